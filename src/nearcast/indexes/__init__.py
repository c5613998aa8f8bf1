"""The structures that find the clauses a message matches, one folder each, behind one interface.

`base.py` says what an index does, `boolean_indexes.py` lists them by name. A folder holds `layout.py` (the arrays), `build.py`
(how they are filled), `match.py` (the walk of a message) and `index.py` (the class that owns the arrays). `scan` is the
plainest member and the second oracle: always right, never fast.

`nearcast.indexes` is also a function of the public interface, `indexes(kind="boolean")`. Importing a subpackage puts the
module in the place of a function of the same name, so the module itself can be called.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearcast.engines.registry import IndexInfo


class _CallableModule(ModuleType):
    def __call__(self, kind: str = "boolean") -> dict[str, IndexInfo]:
        """The registered indexes of one kind of subscription."""
        from nearcast.engines.registry import indexes

        return indexes(kind)


sys.modules[__name__].__class__ = _CallableModule
