"""The address of a data sink, as a person writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SinkAddress:
    """A sink named by its label, its id or its visible id, in a workspace named by id or label.

    Only a sink addressed by label can be created. An id that the service does not know is a configuration error.
    """

    workspace: str
    by: Literal["label", "id", "visible_id"]
    name: str

    def __str__(self) -> str:
        return f"{self.name} in {self.workspace}"
