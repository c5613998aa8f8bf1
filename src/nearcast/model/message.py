"""What a publisher sends: keywords or a text, a location, perhaps times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from nearcast.errors import MessageError
from nearcast.model.inputs import Id, checked_id, finite_number, read_point
from nearcast.model.normalise import Keyword, check_count, read_keywords
from nearcast.model.regions import Box

if TYPE_CHECKING:
    from nearcast.model.analysis import Analysis


@dataclass(frozen=True, slots=True, init=False)
class Message:
    """One message of a stream.

    Parameters
    ----------
    id
        int64 or non-empty str.
    keywords
        Strings (normalised) or int32 ids; may be empty. Repeats stay, because ranking counts them. Or `text`, never both.
    location
        (x, y), or a `Box` for a message about an area.
    text
        Running text, split into words by the engine's `Analysis`.
    time, expires
        Seconds since 1970 or an aware datetime, stored as seconds. Alive while time <= now < expires; None: forever.
    """

    id: Id
    keywords: tuple[str, ...] | tuple[int, ...] | None
    location: tuple[float, float] | Box
    text: str | None
    time: float | None
    expires: float | None

    def __init__(
        self,
        id: Id,
        keywords: Iterable[Keyword] | None = None,
        location: tuple[float, float] | Box | None = None,
        text: str | None = None,
        time: float | datetime | None = None,
        expires: float | datetime | None = None,
    ) -> None:
        checked = checked_id(id, "message", MessageError)
        label = f"message {checked!r}"
        if (keywords is None) == (text is None):
            state = "neither keywords nor text" if text is None else "both keywords and text"
            raise MessageError(f"{label} has {state}; expected one of them (keywords=[] for a message without words)")
        if text is not None and not isinstance(text, str):
            raise MessageError(f"the text of {label} is {text!r}; expected a str")
        object.__setattr__(self, "id", checked)
        object.__setattr__(self, "keywords", None if keywords is None else _read_keywords(keywords, label))
        object.__setattr__(self, "location", _read_location(location, label))
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "time", _read_time(time, "time", label))
        object.__setattr__(self, "expires", _read_time(expires, "expires", label))
        if self.time is not None and self.expires is not None and self.expires <= self.time:
            raise MessageError(
                f"{label} has time={self.time!r} and expires={self.expires!r}; expected expires > time, or no expires"
            )

    @property
    def box(self) -> Box:
        """The location as a closed box; of zero area for a point."""
        if isinstance(self.location, Box):
            return self.location
        x, y = self.location
        return Box(x, y, x, y)

    def words(self, analysis: Analysis | None = None) -> tuple[Keyword, ...]:
        """The keywords as they are compared with those of subscriptions, in order and with repeats."""
        if self.text is None:
            keywords: tuple[Keyword, ...] = self.keywords or ()
            if analysis is None or analysis.stem is None:
                return keywords
            return tuple(analysis.keyword(word) if isinstance(word, str) else word for word in keywords)
        if analysis is None:
            # Imported late: messages with keywords do not need the tokeniser.
            from nearcast.model.analysis import DEFAULT_ANALYSIS

            analysis = DEFAULT_ANALYSIS
        words = tuple(analysis.words(self.text))
        check_count(len(set(words)), "max_message_keywords", f"the text of message {self.id!r}")
        return words


def _read_keywords(keywords: Iterable[Keyword], label: str) -> tuple[str, ...] | tuple[int, ...]:
    words = read_keywords(keywords, label)
    check_count(len(set(words)), "max_message_keywords", label)
    return words


def _read_location(location: object, label: str) -> tuple[float, float] | Box:
    if location is None:
        raise MessageError(f"{label} has no location; expected location=(x, y), or a Box for an area")
    return location if isinstance(location, Box) else read_point(location, f"the location of {label}")


def _read_time(time: float | datetime | None, name: str, label: str) -> float | None:
    return None if time is None else read_time(time, f"{name} of {label}")


def read_time(time: float | datetime, what: str) -> float:
    """Seconds since 1970; `what` names it in the error."""
    if isinstance(time, datetime):
        if time.utcoffset() is None:
            raise MessageError(
                f"{what} is {time!r} without a time zone; expected seconds since 1970 or an aware datetime (add tzinfo)"
            )
        return time.timestamp()
    return finite_number(time, what, MessageError)
