"""`nearcast warm`: compile every kernel in advance, so that the first message need not wait."""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.cli.console import progress_bar

if TYPE_CHECKING:
    import nearcast as nc


def warm(
    jobs: Annotated[int, typer.Option(min=0, help="Processes that compile in parallel; 0 = one per core.")] = 0,
) -> None:
    """Compile all kernels of every index into the cache, by running a tiny workload through each index."""
    from nearcast.engine.registry import indexes
    from nearcast.machine import cached_kernels

    before = cached_kernels()
    start = time.perf_counter()
    first, *others = indexes("boolean")
    moving = list(indexes("moving"))
    ranked = list(indexes("ranked"))
    names = [first, *others, *moving, *ranked]
    n_jobs = min(jobs or os.cpu_count() or 1, len(names) - 1)
    with progress_bar() as progress:
        task = progress.add_task(f"compiling {first}", total=len(names))
        # The kernels that all indexes share are compiled once, before the processes start.
        warm_boolean(first)
        progress.advance(task)
        with ProcessPoolExecutor(n_jobs, get_context("spawn")) as pool:
            compiling = {pool.submit(warm_boolean, name): name for name in others}
            compiling |= {pool.submit(warm_moving, name): name for name in moving}
            compiling |= {pool.submit(warm_ranked, name): name for name in ranked}
            for future in as_completed(compiling):
                future.result()
                progress.update(task, advance=1, description=f"compiled {compiling[future]}")
    after = cached_kernels()
    n_new = after.n_kernels - before.n_kernels
    compiled = f"{n_new} kernels compiled" if n_new > 0 else "nothing to compile: every kernel was in the cache"
    typer.echo(f"{compiled}; {len(names)} indexes ready in {time.perf_counter() - start:.1f} s")
    typer.echo(f"stored in {after.folder} ({after.n_kernels} kernels, {after.n_bytes / 2**20:.1f} MiB)")


def warm_boolean(index: str) -> None:
    """Every path through a boolean index: regions of all shapes, both kinds of ids and keywords, both spaces, changes."""
    import nearcast as nc

    for space in ("lonlat", "plane"):
        for has_names in (False, True):
            matcher = nc.Matcher(index, space)
            _use_objects(matcher, has_names)
            _use_tables(matcher, has_names, has_words=True)
            _use_tables(nc.Matcher(index, space), has_names, has_words=False)


def warm_moving(index: str) -> None:
    """Every path through a moving index: regions of all shapes, both kinds of messages, expiry, moves, changes."""
    import nearcast as nc

    regions: list[Any] = [nc.Box(0, 0, 4, 4), nc.Circle(2, 2, 1), nc.Polygon([[(0, 0), (5, 0), (0, 5), (0, 0)]]), None]
    locations: list[Any] = [(1, 1), nc.Box(1, 1, 3, 3)]
    for space in ("lonlat", "plane"):
        for has_names in (False, True):
            matcher, ids = nc.MovingMatcher(index, space), _ids(0, 200, has_names)
            matcher.subscribe([nc.Subscription(ids[i], _words(i % 3, i % 5), regions[i % 4]) for i in range(150)])
            messages = [nc.Message(ids[i], _words(*range(i % 6)), locations[i % 2], time=i, expires=i + 5) for i in range(20)]
            matcher.publish(messages)
            matcher.move({ids[i]: nc.Box(i % 7, 0, i % 7 + 3, 3) if i % 4 == 0 else regions[i % 4] for i in range(150)})
            matcher.subscribe([nc.Subscription(ids[151], _words(1), regions[0])])
            matcher.unsubscribe([ids[151], ids[0]])
            matcher.advance(100.0)


def warm_ranked(index: str) -> None:
    """Every path through a ranked index: both windows, both kinds of ids, every buffer, messages that displace others."""
    import nearcast as nc
    from nearcast.ranked.factory import buffers_for

    windows: list[tuple[int, Any, str]] = [(0, nc.CountWindow(5), "window_grid"), (1, nc.TimeWindow(5.0), "window_ir_tree")]
    for first, buffer in enumerate(buffers_for(index)):
        for number, window, window_index in windows:
            ranker = nc.Ranker(window, index, buffer, max_distance=1e6, window_index=window_index)
            # Enough messages that the window is indexed.
            ids = _ids(0, 600, (first + number) % 2 == 1)
            ranker.subscribe([nc.RankedSubscription(ids[i], _words(i % 3, i % 5), (i, i), 2) for i in range(20)])
            ranker.publish([nc.Message(ids[i], _words(*range(i % 6)), (i % 90, i % 90), time=i) for i in range(600)])
            ranker.subscribe([nc.RankedSubscription(ids[21], _words(1), (0, 0))])
            ranker.unsubscribe([ids[0]])
            ranker.advance(1000.0)
            ranker.top_table()


def _use_objects(matcher: nc.Matcher, has_names: bool) -> None:
    import nearcast as nc

    triangle = nc.Polygon([[(0, 0), (5, 0), (0, 5), (0, 0)]])
    regions: list[Any] = [nc.Box(0, 0, 4, 4), nc.Circle(2, 2, 1), triangle, None]
    ids = _ids(0, 60, has_names)
    interest = "(word1 OR word2) AND NOT word4"
    subscriptions = [nc.Subscription(ids[i], _words(i % 3, i % 5), regions[i % len(regions)]) for i in range(40)]
    matcher.subscribe([*subscriptions, nc.Subscription(ids[40], interest=interest, region=regions[0])])
    messages = [nc.Message(ids[i], _words(*range(i % 6)), (1 + i % 3, 1)) for i in range(8)]
    matcher.publish([*messages, nc.Message(ids[8], _words(1, 2), nc.Box(1, 1, 3, 3))])
    matcher.subscribe([nc.Subscription(ids[41], _words(1), regions[0])])
    matcher.unsubscribe([ids[41], ids[0]])
    matcher.explain(messages[0], ids[1])


def _use_tables(matcher: nc.Matcher, has_names: bool, has_words: bool) -> None:
    import pyarrow as pa

    n = 40
    lists = [_words(i % 3, i % 7) if has_words else [i % 3, i % 7] for i in range(n)]
    keywords = pa.array(lists, pa.list_(pa.string() if has_words else pa.int32()))
    low, high = [float(i % 4) for i in range(n)], [float(i % 4 + 2) for i in range(n)]
    common = {"id": _ids(200, n, has_names), "keywords": keywords}
    boxes = pa.table({**common, "x0": low, "y0": low, "x1": high, "y1": high})
    matcher.subscribe_table(boxes)
    matcher.match_table(pa.table({**common, "x": low, "y": high}))
    matcher.match_table(boxes)
    # A few after many: these are inserted; the index was built from the ones before.
    matcher.subscribe_table(boxes.slice(0, 1).set_column(0, "id", pa.array(_ids(300, 1, has_names))))
    matcher.unsubscribe(_ids(300, 1, has_names))


def _ids(first: int, n: int, has_names: bool) -> list[Any]:
    return [f"s{number}" if has_names else number for number in range(first, first + n)]


def _words(*numbers: int) -> list[str]:
    return [f"word{number}" for number in numbers]
