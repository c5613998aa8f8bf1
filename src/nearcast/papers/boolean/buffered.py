"""Insert and delete for structures that can only be built as a whole: a buffer of new clauses, and a rebuild when it is large.

New clauses go to a `keyword_first` index until they are more than a share of the built ones. Dead clauses remain in the
built structure and are skipped when a match is verified.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearcast.boolean.index import BooleanIndex
from nearcast.columns.clauses import ClauseStore
from nearcast.columns.messages import MessageBatch
from nearcast.engine.groups import Groups, Work, joined, total
from nearcast.engine.registry import Parameters
from nearcast.papers.boolean.keyword_first.index import KeywordFirst

# Paper: silent. Compendium: rebuild when the buffer exceeds 5 % of the clauses; small worlds need not rebuild at each step.
_SHARE = 0.05
_LEAST = 64


class BufferedIndex(BooleanIndex):
    """Implements insert and delete for a structure that offers `build_whole` and `match_built`."""

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._buffer = KeywordFirst(Parameters())
        self._buffered: NDArray[np.int32] = np.empty(0, np.int32)
        self._n_built = 0
        self._history: MessageBatch | None = None

    @abstractmethod
    def build_whole(self, clauses: ClauseStore, slots: NDArray[np.int32], history: MessageBatch | None) -> None:
        """Build the structure over the clauses at `slots`; what was built before is dropped."""

    @abstractmethod
    def match_built(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        """Every matching pair of the built structure, each once, without dead clauses."""

    @abstractmethod
    def explain_built(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        """The path of the first message through the built structure to one clause."""

    @abstractmethod
    def built_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the built structure."""

    @abstractmethod
    def restore_built(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Use arrays that `built_arrays` returned."""

    def build(self, clauses: ClauseStore, history: MessageBatch | None = None) -> None:
        self._history = history
        slots = np.flatnonzero(clauses.layout().is_alive).astype(np.int32)
        self.build_whole(clauses, slots, history)
        self._n_built = len(slots)
        self._clear_buffer()

    def insert(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        self._buffered = np.concatenate([self._buffered, slots])
        if len(self._buffered) > max(_LEAST, _SHARE * self._n_built):
            self.build(clauses, self._history)
        else:
            self._buffer.insert(clauses, slots)

    def delete(self, clauses: ClauseStore, slots: NDArray[np.int32]) -> None:
        is_buffered = np.isin(slots, self._buffered)
        if is_buffered.any():
            self._buffer.delete(clauses, slots[is_buffered])
            self._buffered = self._buffered[~np.isin(self._buffered, slots)]

    def match(self, clauses: ClauseStore, messages: MessageBatch) -> tuple[Groups, Work]:
        built, work = self.match_built(clauses, messages)
        if len(self._buffered) == 0:
            return built, work
        recent, more_work = self._buffer.match(clauses, messages)
        return joined([built, recent], len(messages)), total([work, more_work])

    def explain(self, clauses: ClauseStore, messages: MessageBatch, slot: int) -> list[str]:
        if slot in self._buffered:
            lines = self._buffer.explain(clauses, messages, slot)
            return [f"buffer of {len(self._buffered)} clauses that are newer than the structure", *lines]
        return self.explain_built(clauses, messages, slot)

    def stats(self) -> dict[str, int | float]:
        return {**super().stats(), "buffered": len(self._buffered)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        buffer = {f"buffer_{name}": array for name, array in self._buffer.arrays().items()}
        counts: dict[str, NDArray[Any]] = {"buffered": self._buffered, "n_built": np.array([self._n_built], np.int64)}
        return {**self.built_arrays(), **counts, **buffer}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        prefix = "buffer_"
        self._buffer.restore({name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)})
        self._buffered = arrays["buffered"]
        self._n_built = int(arrays["n_built"][0])
        self.restore_built(arrays)

    def _clear_buffer(self) -> None:
        self._buffer = KeywordFirst(Parameters())
        self._buffered = np.empty(0, np.int32)
