"""`@kernel` and `@inline_kernel`: the one place that calls Numba, with a cache keyed by source.

Numba's own cache does not see edits in another file and depends on the path of the source. Ours is keyed by the text of the
module and of every nearcast module it imports, so an edit recompiles what depends on it and nothing else, wherever it lies.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import os
import re
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import config as numba_config
from numba.core import event as numba_event
from numba.core import types as numba_types
from numba.core.caching import _CacheLocator
from numba.extending import intrinsic

from nearcast import settings

logger = logging.getLogger("nearcast.compile")

PACKAGE = Path(__file__).resolve().parent.parent
_IMPORT = re.compile(r"^\s*(?:from (nearcast[\w.]*) import ([^\n(]+|\([^)]*\))|import (nearcast[\w.]*))", re.MULTILINE)
_decorating = threading.Lock()
_writable: set[Path] = set()

# Kernels are not annotated: their parameter types are the comments of the layouts.
Kernel = Callable[..., Any]


def cache_folder() -> Path:
    """The folder of compiled kernels; one per bounds-check mode, because Numba's key leaves it out."""
    given = settings.text("kernel_cache")
    user_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = Path(given) if given else user_cache / "nearcast" / "kernels"
    return root / ("bounds-checked" if numba_config.BOUNDSCHECK else "plain")


def _module_file(dotted: str) -> Path | None:
    path = PACKAGE.parent.joinpath(*dotted.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None


@cache
def _resolved(file: str) -> Path:
    return Path(file).resolve()


@cache
def _text(file: Path) -> bytes:
    """The text of a file at the first call, soon after its import: code that is compiled later comes from what was imported."""
    return file.read_bytes()


@cache
def _imported_files(file: Path) -> tuple[Path, ...]:
    """The nearcast modules that `file` names in its import statements.

    Left out: the root package, which names everything but loads it on demand, and what this module imports, which
    has no part in what a kernel computes.
    """
    found: set[Path] = set()
    if file == Path(__file__).resolve():
        return ()
    for module, names, plain in _IMPORT.findall(_text(file).decode()):
        base = module or plain
        candidates = [base, *(f"{base}.{name}" for name in re.findall(r"\w+", names))]
        found.update(path for dotted in candidates if (path := _module_file(dotted)) not in (None, PACKAGE / "__init__.py"))
    return tuple(sorted(found))


@cache
def source_key(file: Path) -> str:
    """A hash of the text of `file` and of every nearcast module it imports, directly or not."""
    pending, seen = [file], {file}
    while pending:
        for path in _imported_files(pending.pop()):
            if path not in seen:
                seen.add(path)
                pending.append(path)
    digest = hashlib.sha256()
    for path in sorted(seen):
        digest.update(_text(path))
    return digest.hexdigest()[:16]


class SourceKeyedLocator(_CacheLocator):  # type: ignore[misc]
    """Lets Numba cache a kernel in a folder named by its module and source key."""

    def __init__(self, function: Callable[..., Any], file: Path) -> None:
        key = source_key(file)
        self._folder = cache_folder() / f"{function.__module__}-{key}"
        self._stamp = key
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> SourceKeyedLocator:
        locator = cls(function, _resolved(file))
        # Once per folder, because the test writes and removes a file.
        if locator._folder not in _writable:
            locator.ensure_cache_path()
            _writable.add(locator._folder)
        return locator


def _compile_cached(function: Kernel, **options: Any) -> Kernel:
    if numba_config.DISABLE_JIT:
        return function
    with _decorating:
        before = numba_config.CACHE_LOCATOR_CLASSES
        # Only while decorating: functions of other packages keep Numba's own cache.
        numba_config.CACHE_LOCATOR_CLASSES = f"{__name__}.{SourceKeyedLocator.__name__}"
        try:
            compiled: Kernel = numba.njit(cache=True, nogil=True, **options)(function)
            return compiled
        finally:
            numba_config.CACHE_LOCATOR_CLASSES = before


def kernel(function: Kernel) -> Kernel:
    """Compile a loop: cached, without the GIL, with Python's own arithmetic errors."""
    return _compile_cached(function)


def inline_kernel(function: Kernel) -> Kernel:
    """Compile a small helper into each of its callers: a call that passes arrays costs more than the helper itself."""
    return _compile_cached(function, forceinline=True)


def _without_count(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, numba_types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = array.meminfo.type(None)
        array.parent = array.parent.type(None)
        return array._getvalue()
    if isinstance(kind, numba_types.BaseTuple):  # type: ignore[attr-defined]
        parts = [_without_count(context, builder, part, builder.extract_value(value, i)) for i, part in enumerate(kind)]
        return context.make_tuple(builder, kind, parts)
    return value


@intrinsic  # type: ignore[untyped-decorator]
def _fast_borrow(typingctx: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_count(context, builder, value, arguments[0])

    return value(value), codegen


def _plain_borrow(value: Any) -> Any:
    return value


borrow: Kernel = _plain_borrow if numba_config.DISABLE_JIT else _fast_borrow
"""The same array or tuple of arrays as a borrowed reference: Numba does not count its uses.

Numba counts references atomically whenever an array is read from a tuple or passed to a helper, which can cost more than the
loop around it. The caller of a kernel holds all arguments until the kernel returns, so inside they need no counting.
"""


class _CompileNotice(numba_event.Listener):  # type: ignore[misc]
    """Print once per process that kernels are being compiled, because the first use takes seconds."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: Any) -> None:
        if self._said or not _is_ours(event):
            return
        self._said = True
        logger.warning("compiling matching kernels for this machine (once; kept in %s)", cache_folder())

    def on_end(self, event: Any) -> None:
        pass


def _is_ours(event: Any) -> bool:
    dispatcher = (event.data or {}).get("dispatcher")
    function = getattr(dispatcher, "py_func", None)
    module = inspect.getmodule(function) if function is not None else None
    return module is not None and module.__name__.startswith("nearcast.")


numba_event.register("numba:compile", _CompileNotice())
