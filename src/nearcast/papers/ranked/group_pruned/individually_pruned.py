"""Lists by keyword, each of whose entries is tested by itself: what groups save is seen beside it."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.papers.ranked.group_pruned.index import GroupParameters, GroupPruned


@dataclass(frozen=True, slots=True)
class CellParameters(GroupParameters):
    """Groups are read through, so that large ones, which lie together in memory, are the better ones."""

    group_size: int = 48


class IndividuallyPruned(GroupPruned):
    """The lists of `group_pruned`, read from beginning to end."""

    name = "individually_pruned"
    aliases = ("ipt",)
    paper = "Wang et al., Skype (VLDB 2016)"
    summary = "lists by keyword, every entry tested by words, place and threshold"
    parameters_class = CellParameters
    is_grouped = False
