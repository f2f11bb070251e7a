"""The file of a plan: JSON that only its owner can read, because it contains values."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ingestd.commands.sync_plan.values import VERSION, SyncPlan
from ingestd.core.errors import IngestdError


class PlanUnusable(IngestdError):
    """The file of a plan can't be read; the sentence has the reason."""


def encode_plan(plan: SyncPlan) -> bytes:
    """Return the plan as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n"


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
