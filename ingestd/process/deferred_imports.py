"""Imports of large libraries that take effect at the first use of the library.

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
    """Import each of these top-level packages when one of its names is used; ignore packages that are imported already.

    Call this before importing modules that import these packages. ``from library import name`` and ``import library.module``
    import a library at once. Any thread may be the first to use a library. If its import fails, the first use raises the error.
    """
    _finder.libraries.update(libraries)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def is_deferred(library: str) -> bool:
    """Return True if a module has imported the package, but the package is not executed yet."""
    return isinstance(sys.modules.get(library), _DeferredModule)


def complete_imports() -> None:
    """Complete all deferred imports now, before work with a time limit."""
    for module in list(sys.modules.values()):
        if isinstance(module, _DeferredModule):
            importlib.import_module(_undefer(module))


def _undefer(module: _DeferredModule) -> str:
    """Make the next import of a package a real import; return the name of the package."""
    name = module.__name__
    with _lock:
        _finder.libraries.discard(name)
        if sys.modules.get(name) is module:
            del sys.modules[name]
    return name


class _DeferredModule(ModuleType):
    """A placeholder for a package. At the first use of a name, it imports the package, and returns the package's names."""

    is_ready = False
    """Whether the import system has set the module's attributes. Until then, it requests attributes that must be absent."""

    def __getattr__(self, name: str) -> Any:
        if not self.is_ready:
            raise AttributeError(name)
        # `_lock` is not held: another thread waits here for the import system's own lock until the import is complete.
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
