"""Imports of large libraries that take effect at their first use.

A command that finds nothing changed uses none of them, and ends before it could have imported them. The modules that use a
library import it as usual, at their top, so that type checkers and import contracts see every import.
"""

from __future__ import annotations

import importlib
import sys
import threading
from types import ModuleType
from typing import Any

_lock = threading.Lock()


def defer_imports(*libraries: str) -> None:
    """Import each of these top-level packages when one of its names is used. One that is imported already stays as it is.

    To be called before the modules that import them. ``from library import name`` and ``import library.module`` import it at
    once. Any thread may use it first. A library that can't be imported raises at its first use.
    """
    for name in libraries:
        sys.modules.setdefault(name, _DeferredModule(name))


def is_deferred(library: str) -> bool:
    """Return True if the import of the package has not taken effect."""
    return isinstance(sys.modules.get(library), _DeferredModule)


class _DeferredModule(ModuleType):
    """Stands for a package until one of its names is used, and passes on every name then."""

    def __getattr__(self, name: str) -> Any:
        with _lock:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
        # Outside the lock: another thread waits here for the import system's own lock until the import is complete.
        value = getattr(importlib.import_module(self.__name__), name)
        if not name.startswith("__"):
            self.__dict__[name] = value  # the next use is that of a plain module
        return value
