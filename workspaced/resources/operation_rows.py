"""Rows of the table of operations, in the two forms that most resources need."""

from __future__ import annotations

from typing import Any

from workspaced.http.operations import Operation, Prepare, Read


def read_operation(name: str, path: str, scope: str | None, read: Read, **options: Any) -> Operation:
    """Return a GET; ``options`` are further fields of `Operation`."""
    return Operation(name=name, method="GET", path=path, scope=scope, read=read, **options)


def write_operation(name: str, method: str, path: str, scope: str, prepare: Prepare, **options: Any) -> Operation:
    """Return a write with a body of limited size; ``options`` are further fields of `Operation`."""
    return Operation(name=name, method=method, path=path, scope=scope, prepare=prepare, **options)
