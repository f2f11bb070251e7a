"""A source under test: how the suite opens it, and how it changes it from outside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from ingestd.sdk.connector import Connector


class Rig(ABC):
    """A real source with at least three records at first, preferably in several batches.

    ``unchanged_yields_nothing``: a reading from the last cursor of an unchanged source yields nothing. False for a snapshot
    of a source that cannot report changes, such as a table. It must stay True for an incremental source.
    """

    unchanged_yields_nothing: ClassVar[bool] = True
    secrets: ClassVar[tuple[str, ...]] = ()
    """Texts of the options that no sentence may contain."""

    @abstractmethod
    def connector(self) -> Connector:
        """Return a new connector for the same source, as after a restart of the daemon."""

    @abstractmethod
    def add(self) -> None:
        """Add a record to the source, after the others."""

    @abstractmethod
    def change(self) -> None:
        """Change a value of an existing record."""

    @abstractmethod
    def remove(self) -> None:
        """Remove a record."""

    def add_unreadable(self) -> bool:
        """Add a record that cannot be read, after the others; return False if the source cannot contain one.

        The test of unreadable records then has nothing to test and passes.
        """
        return False

    def broken(self) -> Connector | None:
        """Return a connector of a source that cannot be read; None if nothing can be broken."""
        return None
