"""Imports of large libraries that take effect at their first use.

A command that finds no changes needs none of these libraries, and ends in less time than their import takes. The modules that
use a library import it as usual, at their top, so that type checkers and import contracts see every import.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_lock = threading.Lock()


def defer_imports(*libraries: str) -> None:
    """Import each of these top-level packages when one of its names is used.

    A package that is imported already does not change.

    Call this before importing modules that import these packages. ``from library import name`` and ``import library.module``
    import it at once. Any thread may use it first. A library that can't be imported raises at its first use.
    """
    _finder.libraries.update(libraries)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def is_deferred(library: str) -> bool:
    """Return True if the package was imported, and the import has not taken effect."""
    return isinstance(sys.modules.get(library), _DeferredModule)


def complete_imports() -> None:
    """Import every deferred package now that some module has imported, for work with a limited time."""
    for module in list(sys.modules.values()):
        if isinstance(module, _DeferredModule):
            importlib.import_module(_undefer(module))


def _undefer(module: _DeferredModule) -> str:
    """Make the next import of a package the real one; return its name."""
    name = module.__name__
    with _lock:
        _finder.libraries.discard(name)
        if sys.modules.get(name) is module:
            del sys.modules[name]
    return name


class _DeferredModule(ModuleType):
    """A package until one of its names is used; then it passes on every name."""

    is_ready = False
    """Whether the import system has set the attributes of a module, for which it looks first."""

    def __getattr__(self, name: str) -> Any:
        if not self.is_ready:
            raise AttributeError(name)
        # Outside the lock: another thread waits here for the import system's own lock until the import is complete.
        value = getattr(importlib.import_module(_undefer(self)), name)
        if not name.startswith("__"):
            self.__dict__[name] = value  # the next use finds a plain module attribute
        return value


class _DeferringFinder(MetaPathFinder):
    """Finds the deferred packages before every other finder."""

    def __init__(self) -> None:
        self.libraries: set[str] = set()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - a protocol
        target: ModuleType | None = None,  # noqa: ARG002 - a protocol
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, _DeferringLoader()) if fullname in self.libraries else None


class _DeferringLoader(Loader):
    """Creates the deferred modules."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _DeferredModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Execute nothing: the package is executed when one of its names is used."""
        module.__dict__["is_ready"] = True


_finder = _DeferringFinder()
