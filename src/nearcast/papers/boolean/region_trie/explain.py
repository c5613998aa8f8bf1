"""The way of a message through the trie towards one clause, in words."""

from __future__ import annotations

import numpy as np

from nearcast.columns.messages import MessageBatch
from nearcast.papers.boolean.region_trie.layout import FiledArrays, TrieArrays


def explain_trie(filed: FiledArrays, trie: TrieArrays, messages: MessageBatch, slot: int) -> list[str]:
    """One line per node on the clause's path, up to where the message is turned away."""
    arrays = messages.arrays
    position = int(np.flatnonzero(filed.clause == slot)[0])
    keyword_of = {int(rank): keyword for keyword, rank in enumerate(filed.rank)}
    had = set(arrays.keyword[: arrays.keyword_start[1]].tolist())
    told: list[str] = []
    node = 0
    while True:
        x0, y0, x1, y1 = trie.box[4 * node : 4 * node + 4].tolist()
        keyword = keyword_of[int(trie.word[node])] if node else None
        name = "root" if keyword is None else f"keyword {keyword}"
        if keyword is not None and keyword not in had:
            return [*told, f"{name}: not entered, the message lacks it"]
        n_below = int(trie.stop[node] - trie.first[node])
        if x0 > arrays.x1[0] or arrays.x0[0] > x1 or y0 > arrays.y1[0] or arrays.y0[0] > y1:
            return [*told, f"{name}: the box {(x0, y0, x1, y1)} around its {n_below} clauses misses the message"]
        told.append(f"{name}: entered, {n_below} clauses below")
        if position < trie.ending_stop[node]:
            n_ending = int(trie.ending_stop[node] - trie.first[node])
            return [*told, f"{n_ending} clauses end here: their boxes are verified"]
        children = slice(int(trie.child_start[node]), int(trie.child_start[node + 1]))
        node = children.start + int(np.searchsorted(trie.stop[children], position, side="right"))
