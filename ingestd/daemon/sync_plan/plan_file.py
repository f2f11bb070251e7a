"""The file of a plan: JSON that only its owner can read, because it contains values."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ingestd.core.errors import IngestdError
from ingestd.daemon.sync_plan.values import VERSION, SyncPlan


class PlanUnusable(IngestdError):
    """The file of a plan can't be read or written; the sentence has the reason."""


def encode_plan(plan: SyncPlan) -> bytes:
    """Return the plan as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n"


def write_private(path: Path, content: bytes) -> None:
    """Write a file with mode 0600 and replace an existing one.

    Raises:
        PlanUnusable: it can't be written.
    """
    hidden = path.with_name(f".{path.name}.part")
    try:
        hidden.unlink(missing_ok=True)
        with os.fdopen(os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(content)
        hidden.replace(path)
    except OSError as error:
        raise PlanUnusable(f"{path} can't be written: {error.strerror or error}.") from error


def read_plan(path: Path) -> SyncPlan:
    """Return the plan in a file of ``ingestd plan --save``.

    Raises:
        PlanUnusable: it can't be read, is no plan, or is one of another version.
    """
    try:
        content = path.read_bytes()
        version = msgspec.json.decode(content, type=_Versioned).version
        if version != VERSION:
            raise PlanUnusable(
                f"{path} has version {version} of a plan, and this ingestd reads version {VERSION}. Make the plan again."
            )
        return msgspec.json.decode(content, type=SyncPlan)
    except OSError as error:
        raise PlanUnusable(f"{path} can't be read: {error.strerror or error}.") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise PlanUnusable(f"{path} is no plan of 'ingestd plan --save': {error}.") from error


class _Versioned(msgspec.Struct):
    version: int
