"""Every index by name, with the paper it comes from and its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from importlib import import_module
from typing import Any

from nearcast.errors import IndexParameterError
from nearcast.indexes.base import BooleanIndex
from nearcast.indexes.moving_base import MovingIndex
from nearcast.indexes.ranked_base import Ground, RankedIndex
from nearcast.indexes.window_base import WindowIndex

# Name and class of each member; `nearcast.indexes.<name>.index` is loaded when it is asked for: a process that matches with
# one index does not wait for the kernels of all the others.
BOOLEAN_INDEXES = {
    "scan": "Scan",
    "keyword_first": "KeywordFirst",
    "spatial_first": "SpatialFirst",
    "ir_tree": "IRTree",
    "textual_rtree": "TextualRTree",
    "region_trie": "RegionTrie",
    "pivot_quadtree": "PivotQuadtree",
    "cost_filter": "CostFilter",
    "space_first_quadtree": "SpaceFirstQuadtree",
    "keyword_first_quadtree": "KeywordFirstQuadtree",
    "trie_quadtree": "TrieQuadtree",
    "frequency_grid": "FrequencyGrid",
    "adaptive_tree": "AdaptiveTree",
    "frequency_pyramid": "FrequencyPyramid",
}
MOVING_INDEXES = {
    "moving_scan": "MovingScan",
    "grid_space_first": "GridSpaceFirst",
    "grid_keyword_first": "GridKeywordFirst",
    "moving_space_first_quadtree": "MovingSpaceFirstQuadtree",
    "moving_keyword_first_quadtree": "MovingKeywordFirstQuadtree",
    "moving_adaptive_tree": "MovingAdaptiveTree",
    "moving_grid": "MovingGrid",
}
RANKED_INDEXES = {
    "ranked_scan": "RankedScan",
    "individually_pruned": "IndividuallyPruned",
    "covering_quadtree": "CoveringQuadtree",
    "group_pruned": "GroupPruned",
    "impact_grid": "ImpactGrid",
}
AUTO = "frequency_grid"
MOVING_AUTO = "moving_grid"
# Where subscribers may be silent: an index that finds messages around a clause too.
MOVING_SAFE_AUTO = "moving_adaptive_tree"
RANKED_AUTO = "impact_grid"
# How ranked engines search their window: no index of subscriptions.
WINDOW_INDEXES = {
    "window_grid": "WindowGrid",
    "window_ir_tree": "WindowIRTree",
}
WINDOW_AUTO = "window_grid"
KINDS = ("boolean", "moving", "ranked")
AnyIndex = BooleanIndex | MovingIndex | RankedIndex


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What there is to know before choosing an index: where it comes from and its parameters with their defaults."""

    name: str
    paper: str
    summary: str
    parameters: Mapping[str, Any]
    aliases: tuple[str, ...] = ()


def indexes(kind: str = "boolean") -> dict[str, IndexInfo]:
    """The registered indexes of one kind of subscription."""
    if kind not in KINDS:
        raise IndexParameterError(f"there is no kind of index {kind!r}; expected one of {', '.join(KINDS)}")
    members = {"boolean": BOOLEAN_INDEXES, "moving": MOVING_INDEXES, "ranked": RANKED_INDEXES}[kind]
    found: list[type[AnyIndex]] = [_load(members, name) for name in members]
    return {cls.name: IndexInfo(cls.name, cls.paper, cls.summary, _defaults(cls), cls.aliases) for cls in found}


def create_index(name: str, parameters: Mapping[str, Any]) -> BooleanIndex:
    """An empty boolean index; "auto" is the best one registered."""
    cls: type[BooleanIndex] = _chosen(BOOLEAN_INDEXES, AUTO, "index", name)
    return cls(_read_parameters(cls, parameters))


def create_moving_index(name: str, parameters: Mapping[str, Any]) -> MovingIndex:
    """An empty moving index; "auto" is the best one registered."""
    cls: type[MovingIndex] = _chosen(MOVING_INDEXES, MOVING_AUTO, "moving index", name)
    return cls(_read_parameters(cls, parameters))


def create_ranked_index(name: str, parameters: Mapping[str, Any]) -> RankedIndex:
    """An empty ranked index; "auto" is the best one registered."""
    cls: type[RankedIndex] = _chosen(RANKED_INDEXES, RANKED_AUTO, "ranked index", name)
    return cls(_read_parameters(cls, parameters))


def _load(members: Mapping[str, str], name: str) -> Any:
    return getattr(import_module(f"nearcast.indexes.{name}.index"), members[name])


def create_window_index(name: str, ground: Ground) -> WindowIndex:
    """An empty index of a window; "auto" is the best one."""
    chosen: WindowIndex = _chosen(WINDOW_INDEXES, WINDOW_AUTO, "window index", name)(ground)
    return chosen


def _chosen(members: Mapping[str, str], auto: str, what: str, name: str) -> Any:
    wanted = auto if name == "auto" else name
    if wanted in members:
        return _load(members, wanted)
    for cls in (_load(members, member) for member in members):
        if wanted in cls.aliases:
            return cls
    raise IndexParameterError(f"there is no {what} {name!r}; expected 'auto' or one of {', '.join(members)}")


def _read_parameters(cls: type[AnyIndex], given: Mapping[str, Any]) -> Any:
    known = _defaults(cls)
    for name, value in given.items():
        if name not in known:
            takes = ", ".join(known) or "no parameters"
            raise IndexParameterError(f"index {cls.name!r} has no parameter {name!r}; it takes {takes}")
        expected = type(known[name])
        if not isinstance(value, expected) and not (expected is float and isinstance(value, int)):
            raise IndexParameterError(f"{name}={value!r} is of type {type(value).__name__}; expected {expected.__name__}")
    return cls.parameters_class(**given)


def _defaults(cls: type[AnyIndex]) -> dict[str, Any]:
    return {f.name: f.default for f in fields(cls.parameters_class) if f.default is not MISSING}
