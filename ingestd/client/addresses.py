"""Which workspaces and sinks a name means, as a person writes it. Performs no I/O.

Labels and visible ids are compared without white space around them, in NFC, as the service stores them (contract G7, S1).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from ingestd.client.records import SinkSummary, WorkspaceSummary
from ingestd.core.normal_form import nfc

Naming: TypeAlias = Literal["label", "id", "visible_id"]


def workspaces_named(name: str, listed: Iterable[WorkspaceSummary]) -> list[WorkspaceSummary]:
    """Return the workspaces with this label or id."""
    wanted = nfc(name.strip())
    return [one for one in listed if wanted in {nfc(one.label.strip()), one.id}]


def sinks_named(name: str, listed: Iterable[SinkSummary], *by: Naming) -> list[SinkSummary]:
    """Return the sinks with this name in one of the ways ``by``. Ids are equal in any case (contract S5)."""
    wanted = nfc(name.strip())

    def is_named(sink: SinkSummary, way: Naming) -> bool:
        if way == "label":
            return nfc(sink.label.strip()) == wanted
        return nfc((sink.id if way == "id" else sink.visible_id) or "").lower() == wanted.lower()

    return [sink for sink in listed if any(is_named(sink, way) for way in by)]
