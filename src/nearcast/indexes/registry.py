"""Every index by name, with the paper it comes from and its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar

from nearcast.errors import IndexParameterError
from nearcast.indexes.adaptive_tree.index import AdaptiveTree
from nearcast.indexes.base import BooleanIndex
from nearcast.indexes.cost_filter.index import CostFilter
from nearcast.indexes.frequency_grid.index import FrequencyGrid
from nearcast.indexes.grid_keyword_first.index import GridKeywordFirst
from nearcast.indexes.grid_space_first.index import GridSpaceFirst
from nearcast.indexes.ir_tree.index import IRTree
from nearcast.indexes.keyword_first.index import KeywordFirst
from nearcast.indexes.keyword_first_quadtree.index import KeywordFirstQuadtree
from nearcast.indexes.moving_adaptive_tree.index import MovingAdaptiveTree
from nearcast.indexes.moving_base import MovingIndex
from nearcast.indexes.moving_grid.index import MovingGrid
from nearcast.indexes.moving_keyword_first_quadtree.index import MovingKeywordFirstQuadtree
from nearcast.indexes.moving_scan.index import MovingScan
from nearcast.indexes.moving_space_first_quadtree.index import MovingSpaceFirstQuadtree
from nearcast.indexes.pivot_quadtree.index import PivotQuadtree
from nearcast.indexes.ranked_base import RankedIndex
from nearcast.indexes.ranked_scan.index import RankedScan
from nearcast.indexes.region_trie.index import RegionTrie
from nearcast.indexes.scan.index import Scan
from nearcast.indexes.space_first_quadtree.index import SpaceFirstQuadtree
from nearcast.indexes.spatial_first.index import SpatialFirst
from nearcast.indexes.textual_rtree.index import TextualRTree
from nearcast.indexes.trie_quadtree.index import TrieQuadtree

BOOLEAN_INDEXES: tuple[type[BooleanIndex], ...] = (
    Scan,
    KeywordFirst,
    SpatialFirst,
    IRTree,
    TextualRTree,
    RegionTrie,
    PivotQuadtree,
    CostFilter,
    SpaceFirstQuadtree,
    KeywordFirstQuadtree,
    TrieQuadtree,
    FrequencyGrid,
    AdaptiveTree,
)
MOVING_INDEXES: tuple[type[MovingIndex], ...] = (
    MovingScan,
    GridSpaceFirst,
    GridKeywordFirst,
    MovingSpaceFirstQuadtree,
    MovingKeywordFirstQuadtree,
    MovingAdaptiveTree,
    MovingGrid,
)
RANKED_INDEXES: tuple[type[RankedIndex], ...] = (RankedScan,)
AUTO = FrequencyGrid.name
MOVING_AUTO = MovingGrid.name
# Where subscribers may be silent: an index that finds messages around a clause too.
MOVING_SAFE_AUTO = MovingAdaptiveTree.name
RANKED_AUTO = RankedScan.name
KINDS = ("boolean", "moving", "ranked")
AnyIndex = BooleanIndex | MovingIndex | RankedIndex
Chosen = TypeVar("Chosen", BooleanIndex, MovingIndex, RankedIndex)


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
    by_kind: dict[str, tuple[type[AnyIndex], ...]] = {
        "boolean": BOOLEAN_INDEXES,
        "moving": MOVING_INDEXES,
        "ranked": RANKED_INDEXES,
    }
    members = by_kind[kind]
    return {cls.name: IndexInfo(cls.name, cls.paper, cls.summary, _defaults(cls), cls.aliases) for cls in members}


def create_index(name: str, parameters: Mapping[str, Any]) -> BooleanIndex:
    """An empty boolean index; "auto" is the best one registered."""
    cls = _chosen(BOOLEAN_INDEXES, AUTO, "index", name)
    return cls(_read_parameters(cls, parameters))


def create_moving_index(name: str, parameters: Mapping[str, Any]) -> MovingIndex:
    """An empty moving index; "auto" is the best one registered."""
    cls = _chosen(MOVING_INDEXES, MOVING_AUTO, "moving index", name)
    return cls(_read_parameters(cls, parameters))


def create_ranked_index(name: str, parameters: Mapping[str, Any]) -> RankedIndex:
    """An empty ranked index; "auto" is the best one registered."""
    cls = _chosen(RANKED_INDEXES, RANKED_AUTO, "ranked index", name)
    return cls(_read_parameters(cls, parameters))


def _chosen(members: tuple[type[Chosen], ...], auto: str, what: str, name: str) -> type[Chosen]:
    wanted = auto if name == "auto" else name
    for cls in members:
        if wanted == cls.name or wanted in cls.aliases:
            return cls
    known = ", ".join(cls.name for cls in members)
    raise IndexParameterError(f"there is no {what} {name!r}; expected 'auto' or one of {known}")


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
