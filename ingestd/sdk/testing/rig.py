"""What the suite needs to know of a source: how to open it, and how to change it from outside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from ingestd.sdk.connector import Connector


class Rig(ABC):
    """A real source under test, with at least three records to begin with, best in more than one batch.

    ``unchanged_yields_nothing``: a reading from the last cursor of an unchanged source gives nothing at all. False for a
    snapshot that can't tell, such as a table; an incremental source must keep it True.
    """

    unchanged_yields_nothing: ClassVar[bool] = True

    @abstractmethod
    def connector(self) -> Connector:
        """A new connector over the same source, as after a restart of the daemon."""

    @abstractmethod
    def add(self) -> None:
        """Give the source one more record."""

    @abstractmethod
    def change(self) -> None:
        """Give a record that is there another value."""

    @abstractmethod
    def remove(self) -> None:
        """Take a record away."""

    def broken(self) -> Connector | None:
        """A connector whose ``partitions`` or ``read`` must fail, or None where nothing can be broken."""
        return None
