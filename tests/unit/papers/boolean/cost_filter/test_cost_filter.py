"""The choice between trie and quadtree: figures, estimates, calibration, and the walk through both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.columns.messages import MessageBatch
from nearcast.errors import IndexParameterError
from nearcast.kernels.layouts import MessageArrays
from nearcast.papers.boolean.cost_filter import costs as cost_model
from nearcast.papers.boolean.cost_filter import index as module
from nearcast.papers.boolean.cost_filter.costs import cost_figures
from nearcast.papers.boolean.cost_filter.index import CostFilter
from nearcast.papers.boolean.cost_filter.kernels import QUADTREE_STEP, TEST, TRIE_STEP, pruning_is_dearer
from nearcast.testing.budget import Budget
from nearcast.testing.scenarios.boolean import run_boolean_worlds
from nearcast.testing.scenarios.worlds import WorldMaker

WORLD = WorldMaker(np.random.default_rng(11), "plane").world(150)


def index_of(matcher: nc.Matcher) -> CostFilter:
    index = matcher._index
    assert isinstance(index, CostFilter)
    return index


def built(**options: Any) -> nc.Matcher:
    matcher = nc.Matcher("cost_filter", "plane", **{"leaf_size": 4, **options})
    matcher.subscribe(WORLD[0])
    return matcher


def bias(monkeypatch: pytest.MonkeyPatch, unit_cost: dict[int, float], words_per_clause: float | None = None) -> None:
    """Give the steps of new matchers other costs."""

    def biased(*given: Any) -> Any:
        figures = cost_figures(*given)
        for step, cost in unit_cost.items():
            figures.unit_cost[step] = cost
        return figures if words_per_clause is None else figures._replace(words_per_clause=np.array([words_per_clause]))

    monkeypatch.setattr(module, "cost_figures", biased)


def batch(words: list[list[int]], boxes: list[list[float]], n_keywords: int = 1000) -> MessageBatch:
    start = np.concatenate([[0], np.cumsum([len(some) for some in words])]).astype(np.int64)
    keyword = np.array([word for some in words for word in some], np.int32)
    sides = np.array(boxes, np.float64).reshape(-1, 4).T.copy()
    return MessageBatch(MessageArrays(start, keyword, *sides), np.arange(len(words)), n_keywords)


TRIE_ONLY = {TRIE_STEP: 0.0}
QUADTREE_ONLY = {QUADTREE_STEP: 0.0}


@pytest.mark.parametrize("storage", ["leaves", "mx_cif"])
@pytest.mark.parametrize(
    ("costs", "words_per_clause", "room"),
    [
        (TRIE_ONLY, None, 1 << 12),
        (QUADTREE_ONLY, None, 1 << 12),
        (QUADTREE_ONLY, 1e9, 1 << 12),
        (QUADTREE_ONLY, 1e9, 3),
        (QUADTREE_ONLY, 6.0, 64),
    ],
    ids=["trie", "quadtree", "pruning", "pruning without room", "some pruning"],
)  # fmt: skip
def test_whatever_is_chosen_the_answers_are_the_oracles(
    monkeypatch: pytest.MonkeyPatch,
    budget: Budget,
    storage: str,
    costs: dict[int, float],
    words_per_clause: float | None,
    room: int,
) -> None:
    bias(monkeypatch, costs, words_per_clause)
    monkeypatch.setattr(module, "_FRAMES", room)
    monkeypatch.setattr(module, "_WINDOWS", room)

    def make(space: str = "lonlat") -> nc.Matcher:
        return nc.Matcher("cost_filter", space, leaf_size=2, storage=storage)

    run_boolean_worlds(make, budget.worlds // 4, seed=7)


def test_pruning_looks_at_fewer_clauses_than_the_lists_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    bias(monkeypatch, QUADTREE_ONLY)
    direct = built()
    list_nodes = {(d.subscription_id, d.message_id) for d in direct.publish(WORLD[1])}
    bias(monkeypatch, QUADTREE_ONLY, 1e9)
    pruned = built()
    assert {(d.subscription_id, d.message_id) for d in pruned.publish(WORLD[1])} == list_nodes
    assert pruned.report.candidates <= direct.report.candidates
    assert pruned.report.nodes_visited > direct.report.nodes_visited


def test_more_matches_than_room_in_each_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    # With the last, the windows of the 38 lists fit, and those of one child, but not those of the second.
    for costs, words_per_clause, room in (
        (TRIE_ONLY, None, 4096),
        (QUADTREE_ONLY, None, 4096),
        (QUADTREE_ONLY, 1e9, 4096),
        (QUADTREE_ONLY, 1e9, 76),
    ):
        monkeypatch.setattr(module, "_WINDOWS", room)
        bias(monkeypatch, costs, words_per_clause)
        matcher = nc.Matcher("cost_filter", "plane", leaf_size=16)
        matcher.subscribe([nc.Subscription(i, ["ab"[i % 2]], nc.Box(0, 0, 1, 1)) for i in range(600)])
        messages = [nc.Message(i, ["a", "b", "c"][: 1 + i % 3], (0.5, 0.5)) for i in range(15)]
        assert len(matcher.publish(messages)) == 5 * 300 + 10 * 600


def test_estimates_are_equations_one_and_three_when_every_step_costs_one() -> None:
    index = index_of(built(calibrate=False))
    trie, tree = index._trie, index._tree
    x, y = float(tree.frame[0]), float(tree.frame[3])
    estimated = index.estimates(batch([list(range(6)), []], [[x, y, x, y]] * 2))
    rank = index._entries.rank
    n, n_ranks = int(np.count_nonzero(rank[:6] >= 0)), int(index._entries.n_ranks[0])
    sizes = np.diff(trie.level_start)
    expected = 0.0
    for i in range(1, len(sizes)):
        fanout = sizes[i] / sizes[i - 1]
        expected += min(np.log2(n) * sizes[i], n * np.log2(max(fanout, 1)) * sizes[i - 1]) * min(1, n / n_ranks) ** (i - 1)
    assert estimated.trie[0] == pytest.approx(max(expected, 1))
    n_set = max(1.0, (len(tree.cover) + len(tree.other)) / len(tree.parent))
    n_levels = len(tree.level_start) - 1
    lists = 1.0
    assert estimated.quadtree[0] == pytest.approx(max(1, n_levels * min(np.log2(n) * n_set, np.log2(n_set) * n)) * lists)
    assert estimated.trie[1] == estimated.quadtree[1] == 1


def test_a_message_over_everything_meets_every_list() -> None:
    index = index_of(built())
    n_lists = int(np.count_nonzero(np.diff(index._tree.child_start) == 0))
    everything = index._encoded(batch([[0]], [[-1e9, -1e9, 1e9, 1e9]]))
    assert index._factors(everything).lists[0] == pytest.approx(n_lists)


def test_going_on_pays_with_long_lists_and_few_children() -> None:
    assert not pruning_is_dearer(10_000, 2, 5, 3, 2.0, 0.1, 3.0, 1.0, 1.0)
    assert pruning_is_dearer(10, 2, 5000, 300, 2.0, 0.1, 3.0, 1.0, 1.0)


def test_calibration_changes_costs_but_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = built(calibrate=False)
    monkeypatch.setattr(module, "LEAST_CALIBRATED", 10)
    monkeypatch.setattr(cost_model, "N_SAMPLES", 40)
    timed = built()
    assert plain.stats()["trie_step_cost"] == plain.stats()["quadtree_step_cost"] == 1
    assert 0 < float(timed.stats()["trie_step_cost"]) != 1
    assert float(timed.stats()["look_cost"]) >= 0
    one, two = (sorted((d.subscription_id, d.message_id) for d in m.publish(WORLD[1])) for m in (plain, timed))
    assert one == two


def test_calibration_takes_its_messages_from_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_CALIBRATED", 10)
    taken = []

    def sample_of(history: MessageBatch) -> MessageBatch:
        taken.append(len(history))
        return history

    monkeypatch.setattr(cost_model, "sample_of", sample_of)
    matcher = built()
    index = index_of(matcher)
    index.build(matcher._subscriptions.clauses, batch([[0, 1], [2]], [[0, 0, 1, 1], [0, 0, 0, 0]]))
    index.build(matcher._subscriptions.clauses, batch([], []))
    assert taken == [2]


def test_a_sample_of_a_history_is_spread_over_it() -> None:
    history = batch([[i % 7] for i in range(1000)], [[i, 0, i, 0] for i in range(1000)])
    sample = cost_model.sample_of(history)
    assert len(sample) == cost_model.N_SAMPLES
    assert (sample.arrays.x0[0], sample.arrays.x0[-1]) == (0, 999)
    assert sample.arrays.keyword.tolist() == [int(x) % 7 for x in sample.arrays.x0]


def test_a_fit_finds_the_costs_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    factors = [np.exp(rng.uniform(0, 6, 200)), np.exp(rng.uniform(0, 6, 200))]
    spent = 0.5 * factors[0] ** 0.8 * factors[1] ** 0.3
    monkeypatch.setattr(cost_model, "microseconds", lambda run: run())
    fit = cost_model.fit_cost(factors, lambda rows: float(np.exp(np.log(spent[rows]).mean()) * len(rows)))
    assert fit.unit_cost == pytest.approx(0.5, rel=0.05)
    assert fit.exponent == pytest.approx([0.8, 0.3], abs=0.02)
    assert fit.error < 0.05


def test_the_explanation_tells_which_structure_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    subscription, message = WORLD[0][0], WORLD[1][0]
    for costs, name in ((TRIE_ONLY, "trie"), (QUADTREE_ONLY, "quadtree")):
        bias(monkeypatch, costs)
        assert f"through the {name}" in built().explain(message, subscription.id).path[0]


def test_saved_costs_are_those_of_the_build(tmp_path: Any) -> None:
    matcher = built()
    index_of(matcher)._costs.unit_cost[TEST] = 0.125
    matcher.save(tmp_path / "saved")
    assert nc.Matcher.open(tmp_path / "saved").stats()["look_cost"] == 0.125


@pytest.mark.parametrize("options", [{"leaf_size": 0}, {"max_depth": 99}, {"storage": "no"}, {"keyword_order": "no"}])
def test_an_impossible_option_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(IndexParameterError, match="expected"):
        nc.Matcher("cost_filter", **options)
