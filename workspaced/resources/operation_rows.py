"""Functions that make an operation, one for each HTTP method. ``options`` are further fields of `Operation`."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from workspaced.http.operations import Operation, Read, Write


def get(name: str, path: str, scope: str | None, read: Read, **options: Any) -> Operation:
    """Return a read operation."""
    return Operation(name=name, method="GET", path=path, scope=scope, read=read, **options)


def _write(method: str, name: str, path: str, scope: str, write: Write | None = None, **options: Any) -> Operation:
    """Return a write operation. Without ``write``, the options must have ``prepare``."""
    return Operation(name=name, method=method, path=path, scope=scope, write=write, **options)


post: Final = partial(_write, "POST")
put: Final = partial(_write, "PUT")
patch: Final = partial(_write, "PATCH")
delete: Final = partial(_write, "DELETE")
