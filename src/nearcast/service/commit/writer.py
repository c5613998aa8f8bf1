"""The one writer: gathers operations, lets the engines work, commits, and then answers all at once."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from nearcast.service.commit.changing import Applied
from nearcast.service.commit.commit_batch import Applier
from nearcast.service.commit.recovery import forget_snapshots, load_engines, save_snapshot
from nearcast.service.engines.engines import Engines
from nearcast.service.gateway.publishing import HANDED, Gateway
from nearcast.service.intake.operations import FOR_PIPELINE, Operation
from nearcast.service.limits import Limits
from nearcast.service.problems import Problem, busy, not_handed_over, store_failed
from nearcast.storage.batch import Batch
from nearcast.storage.errors import StoreError
from nearcast.storage.retention import drop_old
from nearcast.storage.store import Store

log = logging.getLogger(__name__)
_TICK_S = 1.0
_RETENTION_S = 60.0
_SNAPSHOT_S = 300.0
_SNAPSHOT_CHANGES = 100_000


class Committed(NamedTuple):
    """What became durable together: the answers, and what readers should know."""

    answers: list[tuple[Operation, Any]]
    applied: Applied | None
    removed: int
    """Events up to this one are gone by retention, or about to be."""


class Writer:
    """A thread that owns the engines and the writing side of the store.

    `on_commit` is called in this thread, once for each commit (or failed batch), in order.
    """

    def __init__(
        self,
        store: Store,
        folder: Path | None,
        limits: Limits,
        on_commit: Callable[[Committed], None],
        gateway: Gateway | None = None,
    ) -> None:
        self._store, self._folder, self._limits, self._on_commit, self._gateway = store, folder, limits, on_commit, gateway
        self._queue: queue.SimpleQueue[Operation | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="nearcast-writer", daemon=True)
        self._n_pending = self._n_pending_bytes = 0
        self._n_changes = 0
        self._removed = store.removed
        self._is_stale = False
        self._unsure: Applied | None = None
        """What the store was given and did not say whether it kept it."""
        self._next_tick = self._next_retention = self._next_snapshot = 0.0
        self.failure: str | None = None
        """Why the last batch could not be kept; None when it was."""
        self.engines: Engines

    def start(self) -> None:
        """Load everything (this takes a while), then take operations."""
        self._load()
        now = time.monotonic()
        self._next_tick, self._next_retention, self._next_snapshot = now, now + _TICK_S, now + _SNAPSHOT_S
        self._thread.start()

    def submit(self, operation: Operation) -> None:
        """Put an operation into the queue; raises Problem 429 when too much waits. Called on the event loop."""
        if self._n_pending > self._limits.pending_messages:
            raise busy(f"{self._n_pending} messages and changes wait to be written; send again after a second")
        if self._n_pending_bytes > self._limits.pending_bytes:
            raise busy(f"{self._n_pending_bytes} bytes wait to be written; send again after a second")
        self._n_pending += operation.n_lines
        self._n_pending_bytes += operation.n_bytes
        self._queue.put(operation)

    @property
    def n_pending(self) -> int:
        return self._n_pending

    def settled(self, operations: Sequence[Operation]) -> None:
        """They wait no more; called on the event loop."""
        self._n_pending -= sum(operation.n_lines for operation in operations)
        self._n_pending_bytes -= sum(operation.n_bytes for operation in operations)

    def stop(self) -> None:
        """Finish what is in the queue, save a snapshot; called in another thread."""
        self._queue.put(None)
        self._thread.join()

    # --- the thread --------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        self.engines = load_engines(self._store, self._folder, self._limits, self._gateway is not None)
        self._applier = Applier(self._store, self.engines, self._limits)
        self._is_stale = False

    def _run(self) -> None:
        is_open = True
        while is_open:
            operations, is_open = self._gather()
            if operations or time.monotonic() >= self._next_tick:
                self._next_tick = time.monotonic() + _TICK_S
                self._process(operations)
            self._keep_house()
        self._snapshot()
        self._note_handed()

    def _gather(self) -> tuple[list[Operation], bool]:
        operations: list[Operation] = []
        n_lines = n_bytes = 0
        try:
            given = self._queue.get(timeout=max(0.001, self._next_tick - time.monotonic()))
            while given is not None:
                operations.append(given)
                n_lines += given.n_lines
                n_bytes += given.n_bytes
                if n_lines >= self._limits.batch_messages or n_bytes >= self._limits.batch_bytes:
                    return operations, True
                given = self._queue.get_nowait()
        except queue.Empty:
            return operations, True
        return operations, False

    def _process(self, operations: list[Operation]) -> None:
        """One commit for all of them; if that fails for another reason than the store, one for each."""
        try:
            self._commit(operations)
        except StoreError as error:
            self._fail(operations, error)
        except Exception as error:  # whatever it is, those who wait must be told
            log.exception("a batch of %d operations failed", len(operations))
            self._is_stale = True
            if len(operations) == 1:
                problem = Problem(500, "internal", f"this request broke the server ({type(error).__name__}); it was not kept")
                self._on_commit(Committed([(operations[0], problem)], None, self._removed))
            else:
                for operation in operations:
                    self._process([operation])

    def _settle(self) -> None:
        """Find out what became of the last write, if the store did not say; readers are told if it was kept after all."""
        unsure = self._unsure
        if unsure is None:
            return
        if unsure.batch.sequence is not None and self._store.settled_sequence() == unsure.batch.sequence:
            # The engines have seen it.
            self._is_stale = False
            self._applier.committed(unsure)
            self._n_changes += len(unsure.batch.subscriptions) + len(unsure.batch.ended)
            self._on_commit(Committed([], unsure, self._removed))
        self._unsure = None

    def _commit(self, operations: list[Operation]) -> None:
        self._settle()
        if self._is_stale:
            self._load()
        # If this fails, the engines may have seen what the store has not.
        self._is_stale = True
        applied = self._applier.apply(operations, time.time())
        if self.failure is not None and applied.is_empty:
            # Nobody may ask for anything while the server says that it is not ready: try whether it would be.
            applied.batch.facts["tried"] = str(time.time())
        if applied.is_empty:
            self._is_stale = False
        else:
            if self._gateway is not None and self._gateway.handed is not None:
                applied.batch.facts[HANDED] = str(self._gateway.handed)
            try:
                self._store.write(applied.batch)
            except StoreError:
                self._is_stale, self._unsure = applied.has_changed_engines, applied
                raise
            self._is_stale = False
            self._applier.committed(applied)
        before, self.failure = self.failure, None
        self._n_changes += len(applied.batch.subscriptions) + len(applied.batch.ended)
        self._hand_over(applied, before)
        self._on_commit(Committed(applied.answers, applied, self._removed))

    def _hand_over(self, applied: Applied, failure_before: str | None) -> None:
        """Bring what is kept to the pipeline. If that fails, those who brought it are told; it is kept, and tried again."""
        if self._gateway is None:
            return
        try:
            self._gateway.hand_over(self._applier.sequence)
        except Exception as error:  # whatever it is, the commit is done and must be told
            if failure_before is None:
                log.exception("nothing can be handed to the pipeline")
            self.failure = str(error)
            answers = [
                (operation, not_handed_over(str(error)) if isinstance(operation, FOR_PIPELINE) else answer)
                for operation, answer in applied.answers
            ]
            applied.answers[:] = answers

    def _fail(self, operations: list[Operation], error: StoreError) -> None:
        if self.failure is None:
            log.error("the store cannot be written: %s", error)
        self.failure = str(error)
        self._on_commit(Committed([(operation, store_failed(str(error))) for operation in operations], None, self._removed))
        # No busy loop while the store is out of order.
        time.sleep(0.05)

    def _keep_house(self) -> None:
        now = time.monotonic()
        if now >= self._next_retention:
            self._next_retention = now + _RETENTION_S
            try:
                drop_old(self._store, time.time(), self._limits.retention_s, self._limits.retention_bytes, self._tell_removed)
            except StoreError as error:
                log.error("old messages could not be removed: %s", error)
            if self._gateway is not None:
                self._gateway.forget_before(time.time() - self._limits.retention_s)
        if now >= self._next_snapshot and self._n_changes >= _SNAPSHOT_CHANGES:
            self._snapshot()

    def _note_handed(self) -> None:
        """Without it the next start would hand over the last commit again; which does no harm."""
        if self._gateway is not None and self._gateway.handed is not None:
            with suppress(StoreError):
                self._store.write(Batch(facts={HANDED: str(self._gateway.handed)}))

    def _tell_removed(self, sequence: int) -> None:
        self._removed = max(self._removed, sequence)
        self._on_commit(Committed([], None, self._removed))

    def _snapshot(self) -> None:
        """Save the matcher, unless nothing has changed since the last time or it is not what the store has."""
        self._next_snapshot = time.monotonic() + _SNAPSHOT_S
        if self._folder is None or self._is_stale or not self._n_changes:
            return
        try:
            fact = save_snapshot(self._applier.sequence, self.engines, self._folder)
            self._store.write(Batch(facts={"snapshot": fact}))
        except (StoreError, OSError) as error:
            log.error("no snapshot could be written, the next start will take longer: %s", error)
            return
        forget_snapshots(self._folder, fact)
        self._n_changes = 0
