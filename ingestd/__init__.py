"""Keeps the data sinks of an engineering data workspace equal to their sources.

``ingestd.sync`` and ``ingestd.plan`` run pipelines once; see `ingestd.api`. `ingestd.client` is the client of the service.
"""

import importlib

__all__ = ["plan", "sync"]  # `__getattr__` imports these names, and __init__.pyi has their types


def __getattr__(name: str) -> object:
    if name in __all__:  # few programs need these names, and they import most of the package
        return getattr(importlib.import_module("ingestd.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
