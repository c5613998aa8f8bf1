"""nearcast: location-aware publish/subscribe. Subscriptions name a region and words; each message reaches those it matches.

Names are loaded when they are first used, so that `import nearcast` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nearcast.boolean.engine import Matcher as Matcher
    from nearcast.columns.vocabulary import Vocabulary as Vocabulary
    from nearcast.engine.registry import IndexInfo as IndexInfo
    from nearcast.engine.registry import indexes as indexes
    from nearcast.errors import NearcastError as NearcastError
    from nearcast.model.analysis import Analysis as Analysis
    from nearcast.model.delivery import Change as Change
    from nearcast.model.delivery import Delivery as Delivery
    from nearcast.model.delivery import Explanation as Explanation
    from nearcast.model.delivery import MatchReport as MatchReport
    from nearcast.model.delivery import RankChange as RankChange
    from nearcast.model.interest import Interest as Interest
    from nearcast.model.interest import parse_interest as parse_interest
    from nearcast.model.message import Message as Message
    from nearcast.model.regions import Box as Box
    from nearcast.model.regions import Circle as Circle
    from nearcast.model.regions import MultiPolygon as MultiPolygon
    from nearcast.model.regions import Polygon as Polygon
    from nearcast.model.regions import region as region
    from nearcast.model.subscription import RankedSubscription as RankedSubscription
    from nearcast.model.subscription import Subscription as Subscription
    from nearcast.model.window import CountWindow as CountWindow
    from nearcast.model.window import TimeWindow as TimeWindow
    from nearcast.moving.engine import MovingMatcher as MovingMatcher
    from nearcast.ranked.engine import Ranker as Ranker

__version__ = "0.1.0"

_MODULE = {
    "Analysis": "model.analysis",
    "Box": "model.regions",
    "Change": "model.delivery",
    "Circle": "model.regions",
    "CountWindow": "model.window",
    "Delivery": "model.delivery",
    "Explanation": "model.delivery",
    "IndexInfo": "engine.registry",
    "Interest": "model.interest",
    "MatchReport": "model.delivery",
    "Matcher": "boolean.engine",
    "Message": "model.message",
    "MovingMatcher": "moving.engine",
    "MultiPolygon": "model.regions",
    "NearcastError": "errors",
    "Polygon": "model.regions",
    "RankChange": "model.delivery",
    "RankedSubscription": "model.subscription",
    "Ranker": "ranked.engine",
    "Subscription": "model.subscription",
    "TimeWindow": "model.window",
    "Vocabulary": "columns.vocabulary",
    "indexes": "engine.registry",
    "parse_interest": "model.interest",
    "region": "model.regions",
}

__all__ = ["__version__", *sorted(_MODULE)]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'nearcast' has no attribute {name!r}")
    value = getattr(import_module(f"nearcast.{_MODULE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
