"""Looking into the engines: top lists, results of moving subscriptions, explanations, dry runs, sizes."""

from __future__ import annotations

import contextlib
import time
from itertools import islice

from nearcast.boolean.engine import Matcher
from nearcast.errors import NearcastError
from nearcast.model.message import Message
from nearcast.model.regions import Box, Region
from nearcast.service.commit.writer import Writer
from nearcast.service.geometry import Point, is_inside
from nearcast.service.inbox.inboxes import Inboxes
from nearcast.service.intake.messages import (
    UNREADABLE,
    Posted,
    check_message,
    clock_of,
    id_key,
    message_out,
    messages_back,
    posted_of,
    sequence_of_given,
)
from nearcast.service.intake.subscriptions import Checked, standing_of
from nearcast.service.intake.tenant_keywords import in_plain_words, without_reserved
from nearcast.service.limits import Limits
from nearcast.service.problems import Problem, not_found, unusable
from nearcast.storage.batch import SubscriptionRow
from nearcast.storage.store import Store
from nearcast.wire.api import (
    CurrentList,
    DryRunOut,
    ExplainIn,
    ExplainOut,
    MessageOut,
    StatsOut,
    TopEntry,
    TopList,
)

_SHOWN_HITS = 20
_MOST_LOOKED_AT = 200_000
"""Messages of the log, also of other tenants, that a dry run goes through."""


class Insight:
    """Everything here blocks: it is called in a reader's thread."""

    def __init__(self, store: Store, writer: Writer, inboxes: Inboxes, limits: Limits) -> None:
        self._store, self._writer, self._inboxes, self._limits = store, writer, inboxes, limits

    def top(self, row: SubscriptionRow) -> TopList:
        if row.kind != "ranked":
            raise unusable(f"subscription {row.id!r} is {row.kind} and has no top list; only ranked ones have", "subscription")
        entries: list[TopEntry] = []
        if row.paused:
            return TopList(row.id, entries)
        for rank, (sequence, score) in enumerate(self._writer.engines.rankers[row.tenant].top(row.number), 1):
            message = self._message(int(sequence))
            if message is not None:
                entries.append(TopEntry(rank, score, message))
        return TopList(row.id, entries)

    def current(self, row: SubscriptionRow) -> CurrentList:
        if row.kind != "moving":
            raise unusable(f"subscription {row.id!r} is {row.kind}; only moving ones have a current result", "subscription")
        sequences = [] if row.paused else self._writer.engines.current(row.number)
        found = (self._message(sequence) for sequence in sequences)
        return CurrentList(row.id, [message for message in found if message is not None])

    def explain(self, row: SubscriptionRow, given: ExplainIn) -> ExplainOut:
        if (given.message is None) == (given.message_id is None):
            raise unusable("explain needs either message (a draft) or message_id, and not both")
        sequence = 0
        if given.message is not None:
            posted = check_message(row.tenant, given.message, clock_of(time.time(), self._limits))
        else:
            assert given.message_id is not None
            sequence, posted = self.kept(row.tenant, given.message_id)
        if posted.audience is not None and not _is_addressed(row, posted.audience):
            return ExplainOut(False, ["the message has an audience, and the subscription is not in it"], [])
        if row.paused:
            return ExplainOut(False, ["the subscription is paused: it hears nothing until it goes on"], [])
        engines = self._writer.engines
        is_ranked = row.kind == "ranked"
        words = without_reserved(posted.words) if is_ranked else posted.words
        place: Box | tuple[float, float] = Box(*posted.box)
        if is_ranked or posted.box[:2] == posted.box[2:]:
            place = ((posted.box[0] + posted.box[2]) / 2, (posted.box[1] + posted.box[3]) / 2)
        message = Message(sequence, keywords=words, location=place, expires=None)
        if is_ranked:
            told = engines.rankers[row.tenant].explain(message, row.number)
        else:
            told = (engines.matcher_with(row.number) if row.kind == "boolean" else engines.moving).explain(message, row.number)
        return ExplainOut(told.matched, [in_plain_words(reason) for reason in told.reasons], [*told.path])

    def kept(self, tenant: str, id: str) -> tuple[int, Posted]:
        """The sequence of a message of a tenant, and the message."""
        key = id_key(tenant, id)
        sequence = sequence_of_given(id) or self._store.find_message_ids([key]).get(key)
        page = None if sequence is None else self._store.page_with(sequence)
        held = None if page is None or sequence is None else page.message(sequence)
        if sequence is None or held is None or held[1] != tenant:
            raise not_found("message", id)
        return sequence, posted_of(*held)

    def _message(self, sequence: int) -> MessageOut | None:
        page = self._inboxes.recent.page_with(sequence) or self._store.page_with(sequence)
        held = None if page is None else page.message(sequence)
        return None if held is None else message_out(held[0])

    def dry_run(self, checked: Checked, n_messages: int) -> DryRunOut:
        """The draft against the last messages of its tenant; a moving one where it is now."""
        if checked.given.kind == "ranked":
            raise unusable("a dry run tells which messages match; a ranked subscription takes the best k of any", "kind")
        tried: list[Posted] = []
        for _, text, tenant, _ in islice(messages_back(self._store, 0.0), _MOST_LOOKED_AT):
            if tenant == checked.tenant:
                with contextlib.suppress(*UNREADABLE):
                    tried.append(posted_of(text, tenant))
                if len(tried) == n_messages:
                    break
        matcher = Matcher()
        try:
            matcher.subscribe([checked.standing.boolean()])
            messages = [
                Message(at, keywords=one.words, location=Box(*one.box) if one.box[:2] != one.box[2:] else one.box[:2])
                for at, one in enumerate(tried)
            ]
            found = sorted(int(delivery.message_id) for delivery in matcher.publish(messages))
        except NearcastError as error:
            raise error if isinstance(error, Problem) else unusable(str(error)) from None
        middle = checked.standing.middle
        hits = [at for at in found if _is_in(tried[at].audience, middle)]
        shown = [message_out(tried[at].body) for at in hits[:_SHOWN_HITS]]
        clauses = int(matcher.stats()["clauses"])
        return DryRunOut(len(tried), len(hits), shown, matcher.report.candidates, clauses)

    def stats(self, tenant: str, is_operator: bool) -> StatsOut:
        """Engines are shared by all tenants, but for those of ranked subscriptions: only operators see more than their own."""
        sizes = self._writer.engines.stats()
        return StatsOut(
            self._store.count_subscriptions(tenant),
            str(self._inboxes.recent.last),
            str(self._inboxes.removed),
            {name: size for name, size in sizes.items() if is_operator or name == f"ranked.{tenant}"},
        )


def _is_addressed(row: SubscriptionRow, audience: Region) -> bool:
    return row.kind != "ranked" and _is_in(audience, standing_of(row).middle)


def _is_in(audience: Region | None, middle: Point | None) -> bool:
    return audience is None or (middle is not None and is_inside(audience, middle))
