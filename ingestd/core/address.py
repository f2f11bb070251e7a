"""The address of a data sink, as a person writes it in a configuration."""

from __future__ import annotations

from typing import Literal

import msgspec


class SinkAddress(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A sink named by its label, its id or its visible id, in a workspace named by id or label.

    Only a sink addressed by label can be created. An id that the service does not know is a configuration error.
    """

    workspace: str
    by: Literal["label", "id", "visible_id"]
    name: str

    def __str__(self) -> str:
        return f"{self.name} in {self.workspace}"
