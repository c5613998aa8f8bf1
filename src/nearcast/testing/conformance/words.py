"""Edge cases of keywords and interests."""

from __future__ import annotations

from itertools import combinations

import pytest

from nearcast.errors import KeywordError
from nearcast.model.analysis import Analysis
from nearcast.model.message import Message
from nearcast.model.regions import Box
from nearcast.model.subscription import Subscription
from nearcast.testing.conformance.base import Cases
from nearcast.testing.oracles.boolean import Pair

_HERE = (1.0, 1.0)
_AROUND = Box(0, 0, 2, 2)


def _every_message(words: str) -> list[Message]:
    """One message at `_HERE` for each set of the letters of `words`, the empty one included."""
    sets = [subset for n in range(len(words) + 1) for subset in combinations(words, n)]
    return [Message(number, subset, _HERE) for number, subset in enumerate(sets)]


class WordCases(Cases):
    """Which words reach which subscription, all at one location."""

    def test_a_subscription_without_keywords_gets_every_message_of_its_region(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(1, [], _AROUND), Subscription(2, None, _AROUND), Subscription(3, ["a"], _AROUND)])
        pairs = both.publish([Message(1, ["z"], _HERE), Message(2, [], _HERE), Message(3, ["a"], (9, 9))])
        assert pairs == {Pair(1, 1), Pair(2, 1), Pair(1, 2), Pair(2, 2)}

    def test_only_subscriptions_without_keywords(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(i, [], Box(i, 0, i + 1, 1)) for i in range(20)])
        assert both.publish([Message(1, [], (5, 0)), Message(2, ["new"], (5.5, 0))]) == {Pair(4, 1), Pair(5, 1), Pair(5, 2)}

    def test_a_message_without_keywords_reaches_only_subscriptions_without_keywords(self) -> None:
        both = self.compare()
        both.subscribe(
            [Subscription(1, ["a"], _AROUND), Subscription(2, [], _AROUND), Subscription(3, interest="NOT a", region=_AROUND)]
        )
        assert both.publish([Message(1, [], _HERE)]) == {Pair(2, 1), Pair(3, 1)}

    def test_unknown_keywords_of_a_message_are_ignored(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(1, ["a"], _AROUND), Subscription(2, ["a", "b"], _AROUND)])
        pairs = both.publish([Message(1, ["never", "a", "heard"], _HERE), Message(2, ["never", "heard"], _HERE)])
        assert pairs == {Pair(1, 1)}

    def test_a_keyword_unknown_when_the_index_was_built_can_be_subscribed_later(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(i, ["a", "m"], _AROUND) for i in range(100)])
        both.publish([Message(1, ["b", "zz", "a", "m"], _HERE)])
        # Before, between and after the known words in any order of words.
        late = ["0", "b", "zz", "é"]
        both.subscribe([Subscription(200 + i, [word], _AROUND) for i, word in enumerate(late)])
        both.subscribe([Subscription(300 + i, ["a", word], _AROUND) for i, word in enumerate(late)])
        pairs = both.publish([Message(1, late, _HERE), Message(2, ["a", "zz"], _HERE)])
        assert {pair for pair in pairs if pair.message_id == 2} == {Pair(202, 2), Pair(302, 2)}

    def test_no_subscription_at_all(self) -> None:
        both = self.compare()
        assert both.publish(_every_message("ab")) == set()

    def test_keyword_sets_that_are_prefixes_of_each_other(self) -> None:
        both = self.compare()
        sets = ["", "a", "ab", "abc", "b", "bc", "c", "abcd", "d", "acd"]
        both.subscribe([Subscription(words or "-", list(words), _AROUND) for words in sets])
        messages = [Message("".join(m.keywords or ()) or "-", m.keywords, _HERE) for m in _every_message("abcd")]  # type: ignore[arg-type]
        pairs = both.publish(messages)
        assert {pair.subscription_id for pair in pairs if pair.message_id == "abc"} == {"-", "a", "ab", "abc", "b", "bc", "c"}
        assert {pair.subscription_id for pair in pairs if pair.message_id == "-"} == {"-"}

    def test_every_message_against_every_keyword_set(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(m.id, m.keywords, _AROUND) for m in _every_message("abcde")])
        # 5 words: each is in the subscription, in the message only, or in neither: 3 ** 5 matching pairs.
        assert len(both.publish(_every_message("abcde"))) == 3**5

    def test_repeated_keywords_count_once(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(1, ["a", "A", "a"], _AROUND), Subscription(2, ["a", "b"], _AROUND)])
        assert both.publish([Message(1, ["a"] * 50, _HERE), Message(2, ["b", "a", "b", "a"], _HERE)]) == {
            Pair(1, 1),
            Pair(1, 2),
            Pair(2, 2),
        }

    def test_keywords_are_compared_folded(self) -> None:
        both = self.compare()
        both.subscribe(
            [Subscription(1, ["Straße"], _AROUND), Subscription(2, ["ＣＡＦÉ"], _AROUND), Subscription(3, ["東京"], _AROUND)]
        )
        pairs = both.publish([Message(1, ["STRASSE"], _HERE), Message(2, ["cafe\u0301"], _HERE), Message(3, ["東京"], _HERE)])
        assert pairs == {Pair(1, 1), Pair(2, 2), Pair(3, 3)}

    def test_numbers_as_keywords(self) -> None:
        both = self.compare()
        numbers = [0, -1, 2**31 - 1, -(2**31), 7]
        both.subscribe([Subscription(i, numbers[: i + 1], _AROUND) for i in range(5)] + [Subscription(9, [], _AROUND)])
        pairs = both.publish([Message(1, numbers, _HERE), Message(2, [0, -1, 8], _HERE), Message(3, [], _HERE)])
        assert {pair.subscription_id for pair in pairs if pair.message_id == 1} == {0, 1, 2, 3, 4, 9}
        assert {pair.subscription_id for pair in pairs if pair.message_id == 2} == {0, 1, 9}

    def test_as_many_keywords_as_allowed(self) -> None:
        both = self.compare()
        words = [f"w{i}" for i in range(4096)]
        both.subscribe(
            [
                Subscription(1, words[:256], _AROUND),
                Subscription(2, words[-256:], _AROUND),
                Subscription(3, [*words[:255], "other"], _AROUND),
            ]
        )
        assert both.publish([Message(1, words, _HERE), Message(2, words[1:], _HERE)]) == {Pair(1, 1), Pair(2, 1), Pair(2, 2)}
        with pytest.raises(KeywordError, match="4096"):
            Message(1, [*words, "one more"], _HERE)
        with pytest.raises(KeywordError, match="256"):
            Subscription(1, words[:257], _AROUND)

    def test_ten_thousand_keywords_when_the_limit_is_raised(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NEARCAST_MAX_MESSAGE_KEYWORDS", "10000")
        both = self.compare()
        words = [f"w{i}" for i in range(10_000)]
        both.subscribe([Subscription(i, [words[i], words[-1 - i]], _AROUND) for i in range(200)])
        assert len(both.publish([Message(1, words, _HERE), Message(2, words[100:], _HERE)])) == 200 + 100

    def test_an_interest_with_several_alternatives_is_delivered_once(self) -> None:
        both = self.compare()
        both.subscribe(
            [
                Subscription(1, interest="a OR b OR c", region=_AROUND),
                Subscription(2, interest="(a OR b) AND (c OR d)", region=_AROUND),
            ]
        )
        pairs = both.publish(_every_message("abcd"))
        assert sum(pair.subscription_id == 1 for pair in pairs) == 14
        assert sum(pair.subscription_id == 2 for pair in pairs) == 9

    def test_forbidden_words(self) -> None:
        both = self.compare()
        interests = ["a AND NOT b", "NOT a", "NOT a AND NOT b", "a OR NOT b", "NOT (a AND b)", "(a OR NOT b) AND (c OR NOT a)"]
        both.subscribe([Subscription(text, interest=text, region=_AROUND) for text in interests])
        pairs = both.publish(
            [Message("".join(map(str, m.keywords or ())) or "-", m.keywords, _HERE) for m in _every_message("abc")]
        )
        assert {pair.message_id for pair in pairs if pair.subscription_id == "NOT a"} == {"-", "b", "c", "bc"}
        assert {pair.message_id for pair in pairs if pair.subscription_id == "a AND NOT b"} == {"a", "ac"}

    def test_a_word_that_is_only_ever_forbidden_still_forbids(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(1, ["a"], _AROUND), Subscription(2, interest="a AND NOT spoiler", region=_AROUND)])
        pairs = both.publish([Message(1, ["a"], _HERE), Message(2, ["a", "spoiler"], _HERE), Message(3, ["spoiler"], _HERE)])
        assert pairs == {Pair(1, 1), Pair(2, 1), Pair(1, 2)}

    def test_an_interest_of_nothing_but_a_forbidden_word_nobody_sends(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(1, interest="NOT unheard", region=_AROUND)])
        assert both.publish([Message(1, [], _HERE), Message(2, ["x"], _HERE), Message(3, ["unheard"], _HERE)]) == {
            Pair(1, 1),
            Pair(1, 2),
        }

    def test_as_many_alternatives_as_allowed(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(1, interest=" OR ".join(f"w{i}" for i in range(256)), region=_AROUND)])
        pairs = both.publish([Message(i, [f"w{i}", f"w{i + 1}"], _HERE) for i in range(-2, 258)])
        assert {pair.message_id for pair in pairs} == set(range(-1, 256))

    def test_texts_and_phrases_are_analysed_alike(self) -> None:
        both = self.compare(analysis=Analysis(stop_words="english"))
        both.subscribe(
            [Subscription(1, interest='"the Flea Market" AND NOT closed', region=_AROUND), Subscription(2, ["market"], _AROUND)]
        )
        pairs = both.publish(
            [
                Message(1, text="A flea market, today!", location=_HERE),
                Message(2, text="The market of fleas is closed", location=_HERE),
                Message(3, text="Flea market CLOSED", location=_HERE),
            ]
        )
        assert pairs == {Pair(1, 1), Pair(2, 1), Pair(2, 2), Pair(2, 3)}
