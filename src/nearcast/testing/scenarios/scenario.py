"""A scenario: the calls of an engine in order, each with the answer of the oracle. Written once, run with any engine.

All three ways to test use this form. Random worlds are written from a seed and run with many engines (`run_worlds`). Named
cases and Hypothesis histories write an action and run it at once (`Comparison`). A world that fails is shrunk (`shrink`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import pyarrow as pa

from nearcast.model.inputs import Id
from nearcast.model.regions import Box
from nearcast.testing.budget import TALLY
from nearcast.testing.scenarios.worlds import WorldMaker

SAVE_AND_OPEN = "save_and_open"
_SHARE_TABLES = 0.3
_SHOWN = 3
_MOST_TRIES = 500

EngineT = TypeVar("EngineT", bound=Any)
OracleT = TypeVar("OracleT", bound=Any)
ChangeT = TypeVar("ChangeT")
ItemT = TypeVar("ItemT")
Tables = Mapping[str, Callable[[Any], pa.Table]]
"""For calls of an engine, how the first argument becomes a table."""


class Answer(NamedTuple):
    """What the oracle answers to a call, and what holds after it."""

    changes: Sequence[Any]
    """The deliveries of a boolean engine, the changes of the others, in any order."""
    rejected: Sequence[int]
    """The rows of the call that are left out."""
    results: Mapping[Id, Any]
    """What each subscription has; nothing for a boolean engine."""


class Action(NamedTuple):
    """One call of an engine, with the answer to expect."""

    name: str
    """A method of the engine and of the oracle, or SAVE_AND_OPEN."""
    arguments: tuple[Any, ...]
    answer: Answer
    as_table: bool = False
    """Whether the engine gets its first argument as a table."""

    def __str__(self) -> str:
        suffix = "_table" if self.as_table else ""
        return f"{self.name}{suffix}({', '.join(map(repr, self.arguments))})"


class Scenario(NamedTuple):
    """What an engine is made with, and what happens to it."""

    run_class: type[Run[Any]]
    options: Mapping[str, Any]
    actions: Sequence[Action]

    def __str__(self) -> str:
        lines = [f"an engine with {', '.join(f'{name}={value!r}' for name, value in self.options.items())}"]
        return "\n".join([*lines, *(f"  {number}. {action}" for number, action in enumerate(self.actions))])


class Run(ABC, Generic[EngineT]):
    """An engine that goes through a scenario. Raises AssertionError where its answer is not that of the oracle."""

    kind: ClassVar[str]
    """Of subscription: the name under which counts are reported."""
    change_type: ClassVar[Any]
    """The named tuple in which the oracle reports; the engine reports the same fields."""
    changes_name: ClassVar[str] = "changes"
    tables: ClassVar[Tables] = {}
    """The calls that are also made with tables."""

    def __init__(self, engine: EngineT) -> None:
        self.engine = engine
        self.counts: Counter[str] = Counter()

    @classmethod
    def begin(cls, make_engine: Callable[..., EngineT], options: Mapping[str, Any]) -> Self:
        return cls(make_engine(**options))

    @staticmethod
    @abstractmethod
    def make_oracle(**options: Any) -> Any:
        """The oracle for the options of an engine."""

    def do(self, action: Action) -> None:
        """Call the engine and compare."""
        n_messages = len(action.arguments[0]) if action.name == "publish" else 0
        counts = {"actions": 1, "messages": n_messages, self.changes_name: len(action.answer.changes)}
        self.counts.update(counts)
        TALLY.add(self.kind, **counts)
        if action.name == SAVE_AND_OPEN:
            with TemporaryDirectory(prefix="nearcast-scenario-") as folder:
                self.save_and_open(Path(folder) / "saved")
        else:
            self.call(action)
        self.check_results(action.answer.results)

    def call(self, action: Action) -> None:
        returned = self.engine_method(action)(*self.engine_arguments(action))
        self.check_changes(action, self.changes_of(returned))
        self.check_rejected(action)

    def engine_method(self, action: Action) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self.engine, f"{action.name}_table" if action.as_table else action.name)
        return method

    def engine_arguments(self, action: Action) -> tuple[Any, ...]:
        if not action.as_table:
            return action.arguments
        return self.tables[action.name](action.arguments[0]), *action.arguments[1:]

    def changes_of(self, returned: Any) -> list[Any]:
        """What an engine returned, as the oracle says it."""
        if isinstance(returned, pa.Table):
            return [self.change_type(**row) for row in returned.to_pylist()]
        names = self.change_type._fields
        return [self.change_type(*(getattr(change, name) for name in names)) for change in returned or ()]

    def save_and_open(self, folder: Path) -> None:
        """Go on with the engine that was saved and opened again."""
        self.engine.save(folder)
        self.engine = type(self.engine).open(folder)

    def check_changes(self, action: Action, changes: Sequence[Any]) -> None:
        compare_changes(changes, action.answer.changes, self.changes_name)

    def check_rejected(self, action: Action) -> None:
        rows = [row for row, _ in self.engine.report.rejected]
        if rows != list(action.answer.rejected):
            raise AssertionError(f"rejected {self.engine.report.rejected!r}; expected rows {action.answer.rejected!r}")

    def check_results(self, results: Mapping[Id, Any]) -> None:
        """Compare what each subscription has now."""


def compare_changes(
    changes: Iterable[Any], expected: Iterable[Any], name: str = "changes", describe: Callable[[Any], str] = str
) -> None:
    """AssertionError that shows the first differences, unless exactly these are reported, each once."""
    times, expected_times = Counter(changes), Counter(expected)
    if times != expected_times:
        lines = [f"{expected_times.total()} {name} expected, {times.total()} found"]
        for label, wrong in (("missing", expected_times - times), ("not expected, or once too often", times - expected_times)):
            lines += [f"  {label}: {describe(change)}" for change in list(wrong)[:_SHOWN]]
        raise AssertionError("\n".join(lines))


class Comparison(Generic[EngineT, OracleT, ChangeT]):
    """An engine and its oracle. Every call goes to both; AssertionError where the engine's answer is not the oracle's."""

    run_class: ClassVar[type[Run[Any]]]

    def __init__(self, engine: EngineT, oracle: OracleT) -> None:
        self.run: Run[EngineT] = self.run_class(engine)
        self.oracle = oracle

    def do(self, name: str, *arguments: Any) -> set[ChangeT]:
        """What both report."""
        action = ask(self.oracle, name, arguments)
        self.run.do(action)
        return set(action.answer.changes)

    def subscribe(self, subscriptions: Sequence[Any]) -> set[ChangeT]:
        return self.do("subscribe", subscriptions)

    def unsubscribe(self, ids: Sequence[Id]) -> None:
        self.do("unsubscribe", ids)

    def publish(self, messages: Sequence[Any]) -> set[ChangeT]:
        return self.do("publish", messages)

    def save_and_open(self, folder: Path) -> None:
        """Go on with the engine that was saved and opened again."""
        self.run.save_and_open(folder)
        self.run.check_results(self.oracle.results())


class ScenarioWriter:
    """Draws actions and asks the oracle for the answers."""

    maker: WorldMaker
    """Draws subscriptions and messages, and which calls are made with tables."""

    def __init__(self, run_class: type[Run[Any]], options: Mapping[str, Any]) -> None:
        self.run_class, self.options = run_class, options
        self.oracle: Any = run_class.make_oracle(**options)
        self.actions: list[Action] = []

    def add(self, name: str, *arguments: Any) -> None:
        """The next action; some become calls with tables, where a table can say the same."""
        rows = arguments[0] if name in self.run_class.tables else ()
        as_table = len(rows) > 0 and self.maker.chance(_SHARE_TABLES) and self._fits_table(rows)
        self.actions.append(ask(self.oracle, name, arguments, as_table))

    def scenario(self) -> Scenario:
        return Scenario(self.run_class, self.options, self.actions)

    def _fits_table(self, rows: Any) -> bool:
        """Moves must be to boxes. Where no row has a keyword, a table does not show whether keywords are numbers."""
        if isinstance(rows, Mapping):
            return all(isinstance(region, Box) for region in rows.values())
        return not self.maker.has_numbers or any(row.keywords for row in rows)


def ask(oracle: Any, name: str, arguments: tuple[Any, ...], as_table: bool = False) -> Action:
    """An action with the oracle's answer. A call that the oracle does not have changes nothing."""
    method = getattr(oracle, name, None)
    changes = () if method is None else method(*arguments)
    return Action(name, arguments, Answer(changes or (), oracle.rejected, oracle.results()), as_table)


# --- running ---------------------------------------------------------------------------------------------------------


def run_worlds(
    write: Callable[[Sequence[int]], Scenario],
    make_engines: Callable[..., Any] | Sequence[Callable[..., Any]],
    n_worlds: int,
    seed: int = 0,
    first: int = 0,
) -> Counter[str]:
    """Write the scenarios `first` … `first + n_worlds - 1` of a seed and run each with every engine; returns what was compared.

    The oracle is asked once for all engines. A failure names the seed, and shows the scenario shrunk.
    """
    makers = make_engines if isinstance(make_engines, Sequence) else [make_engines]
    counts = Counter(worlds=n_worlds)
    for number in range(first, first + n_worlds):
        scenario = write([seed, number])
        TALLY.add(scenario.run_class.kind, worlds=1)
        for make_engine in makers:
            counts.update(run_or_fail(scenario, make_engine, f"world seed={[seed, number]}"))
    return counts


def run(scenario: Scenario, make_engine: Callable[..., Any]) -> Counter[str]:
    """Go through a scenario with a new engine; returns what was compared."""
    engine_run = scenario.run_class.begin(make_engine, scenario.options)
    for action in scenario.actions:
        engine_run.do(action)
    return engine_run.counts


def run_or_fail(scenario: Scenario, make_engine: Callable[..., Any], label: str) -> Counter[str]:
    """As `run`; a failure is shrunk, and its message says how to repeat it."""
    kind = scenario.run_class.kind
    TALLY.add_configuration(kind, name_of(make_engine))
    try:
        return run(scenario, make_engine)
    except Exception as error:
        smallest = shrink(scenario, make_engine)
        raise AssertionError(f"{name_of(make_engine)}: {kind} {label}: {error}\nshrunk to {smallest}") from error


def name_of(make_engine: Callable[..., Any]) -> str:
    """What an engine is called in reports: its variant, or the function that makes it with its options."""
    if isinstance(make_engine, partial):
        options = ",".join(f"{name}={value}" for name, value in make_engine.keywords.items())
        return f"{name_of(make_engine.func)}[{options}]"
    variant = getattr(make_engine, "__self__", None)
    return str(getattr(make_engine, "__qualname__", make_engine) if variant is None else variant)


# --- shrinking -------------------------------------------------------------------------------------------------------


def shrink(scenario: Scenario, make_engine: Callable[..., Any]) -> Scenario:
    """A smaller scenario that fails as well: without some actions, then without parts of their batches."""
    n_tries = 0

    def fails(actions: Sequence[Action]) -> bool:
        nonlocal n_tries
        n_tries += 1
        if n_tries > _MOST_TRIES:
            return False
        try:
            run(rewrite(scenario, actions), make_engine)
        except Exception:  # noqa: BLE001 - a crash is a failure as well
            return True
        return False

    actions = _shortest(list(scenario.actions), fails)
    for position in range(len(actions)):
        actions = _with_shortest_batch(actions, position, fails)
    # Actions of shorter batches may be left out, too.
    return rewrite(scenario, _shortest(actions, fails))


def _with_shortest_batch(actions: list[Action], position: int, fails: Callable[[Sequence[Action]], bool]) -> list[Action]:
    """The actions, one of them with as few rows as still fail."""
    action = actions[position]
    batch = action.arguments[0] if action.arguments else None
    if not isinstance(batch, (list, dict)):
        return actions

    def with_rows(rows: list[Any]) -> list[Action]:
        shorter = dict(rows) if isinstance(batch, dict) else rows
        new = action._replace(arguments=(shorter, *action.arguments[1:]), as_table=action.as_table and bool(rows))
        return [*actions[:position], new, *actions[position + 1 :]]

    return with_rows(_shortest(list(batch.items()) if isinstance(batch, dict) else batch, lambda rows: fails(with_rows(rows))))


def rewrite(scenario: Scenario, actions: Iterable[Action]) -> Scenario:
    """A scenario of these actions, with new answers of the oracle."""
    oracle = scenario.run_class.make_oracle(**scenario.options)
    return scenario._replace(actions=[ask(oracle, a.name, a.arguments, a.as_table) for a in actions])


def _shortest(items: list[ItemT], fails: Callable[[list[ItemT]], bool]) -> list[ItemT]:
    """Leave out items, first many at once, as long as what is left fails."""
    size = len(items)
    while size:
        start = 0
        while start < len(items):
            shorter = items[:start] + items[start + size :]
            if fails(shorter):
                items = shorter
            else:
                start += size
        size //= 2
    return items
