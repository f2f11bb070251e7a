"""Rows of the table of operations, by their methods. ``options`` are further fields of `Operation`."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from workspaced.http.operations import Operation, Prepare, Read


def get(name: str, path: str, scope: str | None, read: Read, **options: Any) -> Operation:
    """Return a read."""
    return Operation(name=name, method="GET", path=path, scope=scope, read=read, **options)


def _write(method: str, name: str, path: str, scope: str, prepare: Prepare, **options: Any) -> Operation:
    """Return a write with a body of limited size."""
    return Operation(name=name, method=method, path=path, scope=scope, prepare=prepare, **options)


post: Final = partial(_write, "POST")
put: Final = partial(_write, "PUT")
patch: Final = partial(_write, "PATCH")
delete: Final = partial(_write, "DELETE")
