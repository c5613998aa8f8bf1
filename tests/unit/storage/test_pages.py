"""Pages give back what they were made of, from memory and from the store; groups of them skip nothing that matters."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pyroaring import BitMap

from nearcast.storage import page_summaries
from nearcast.storage.batch import Batch
from nearcast.storage.pages import ENTERED, LEFT, MATCHED, Events, Page, Span, joined_events, match_events
from nearcast.storage.store import Store, open_store

Told = tuple[int, int, int, float, int]


def events_of(rows: list[tuple[int, int, int, int, float, int]]) -> Events:
    """From (subscription, sequence, message, kind, score, rank)."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * 6
    types = (np.int64, np.int64, np.int64, np.int8, np.float64, np.int32)
    return Events(*(np.array(column, kind) for column, kind in zip(columns, types, strict=True)))


def random_page(
    dice: random.Random, first: int, is_plain: bool, n_subscriptions: int = 12
) -> tuple[Page, dict[int, list[Told]]]:
    n_messages, n_before, n_after = dice.randint(0, 6), dice.randint(0, 3), dice.randint(0, 3)
    message_first, last = first + n_before, first + n_before + n_messages + n_after
    told: dict[int, list[Told]] = {}
    rows = []
    for subscription in dice.sample(range(1, n_subscriptions + 1), dice.randint(0, min(6, n_subscriptions))):
        sequences = range(message_first, message_first + n_messages) if is_plain else range(first, last + 1)
        for sequence in dice.sample(sequences, dice.randint(0, len(sequences))):
            row = (
                (sequence, MATCHED, 0.0, 0)
                if is_plain
                else (dice.randint(1, 99), dice.choice((ENTERED, LEFT)), dice.random(), 3)
            )
            rows.append((subscription, sequence, *row))
            told.setdefault(subscription, []).append((sequence, *row))
    dice.shuffle(rows)
    texts = [f'{{"n":{at}}}'.encode() * dice.randint(1, 3) for at in range(n_messages)]
    tenants = [dice.choice(("a", "b")) for _ in texts]
    page = Page.of(Span(first, message_first, last), 5.0, texts, tenants, events_of(rows))
    for at, (text, tenant) in enumerate(zip(texts, tenants, strict=True)):
        assert page.message(message_first + at) == (text, tenant)
    return page, {subscription: sorted(listed) for subscription, listed in told.items()}


@pytest.mark.parametrize("is_plain", [True, False])
def test_a_page_tells_each_subscription_its_events_in_order(is_plain: bool) -> None:
    dice = random.Random(3)
    for _ in range(100):
        page, told = random_page(dice, dice.randint(1, 50), is_plain)
        again = Page.read(page.first, page.last, page.time, *page.stored())
        for held in (page, again):
            assert set(held.reached) == set(told)
            assert held.n_events == sum(map(len, told.values()))
            for subscription in range(12):
                expected = told.get(subscription, [])
                assert held.events_of(subscription, 0) == expected
                for after in (page.first, page.last - 1, page.last):
                    assert held.events_of(subscription, after) == [row for row in expected if row[0] > after]
            assert held.message(page.message_first + page.n_messages) is None
            assert held.message(page.message_first - 1) is None
        assert [again.message(at) for at in range(page.first, page.last)] == [
            page.message(at) for at in range(page.first, page.last)
        ]


def test_events_of_several_causes_are_one_page() -> None:
    one = match_events(np.array([3, 1]), np.array([11, 11]))
    other = events_of([(1, 10, 7, LEFT, 0.0, 0)])
    page = Page.of(Span(10, 11, 11), 0.0, [b"{}"], ["a"], joined_events([one, other]))
    assert page.events_of(1, 0) == [(10, 7, LEFT, 0.0, 0), (11, 11, MATCHED, 0.0, 0)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(str(tmp_path / "store.db"))
    yield opened
    opened.close()


def test_reading_skips_pages_and_groups_but_nothing_that_matters(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(page_summaries, "_FANOUT", 3)
    dice = random.Random(5)
    pages: list[Page] = []
    for at in range(40):
        # Most pages reach nobody, so that there is something to skip.
        page, _ = random_page(dice, pages[-1].last + 1 if pages else 1, True, 3 if at % 5 == 0 else 1)
        pages.append(page)
        store.write(Batch(page=page, sequence=page.last))
        if at == 20:
            # Open groups are taken up again.
            store.close()
            store = open_store(str(tmp_path / "store.db"))
    rows = store.database.rows("SELECT level, count(*) FROM page_groups GROUP BY level")
    assert dict(rows) == {1: 13, 2: 4}
    last = pages[-1].last
    for numbers in (BitMap([1]), BitMap([2]), BitMap([3]), BitMap([2, 3]), BitMap([9])):
        for after in range(last + 1):
            wanted = [page for page in pages if page.last > after and page.reached.intersect(numbers)]
            found = store.next_page_for(numbers, after, last)
            assert (None if found is None else found.first) == (wanted[0].first if wanted else None)
    assert store.next_page_for(BitMap([1, 2, 3]), 0, 0) is None
    held = store.page_with(pages[7].last)
    assert held is not None
    assert held.first == pages[7].first
    assert store.page_with(last + 1) is None
    assert [page.first for page in store.pages_before(pages[2].first, 9)] == [pages[1].first, pages[0].first]
    store.close()
