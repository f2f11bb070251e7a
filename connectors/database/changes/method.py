"""What every method of detecting changes provides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, TypeAlias

import msgspec

from connectors.database.port import Parameter, ReadSession, SqlDialect

State: TypeAlias = Mapping[str, Any]
"""The part of a cursor that belongs to the method; a JSON object."""

Observation: TypeAlias = Mapping[str, Any]
"""Facts about the server that were read in a transaction before that of the rows."""


class Guarantee(msgspec.Struct, frozen=True, kw_only=True):
    """What a method guarantees.

    ``method`` is its name. ``sentence`` states which changes a reading finds, and why. ``improvement`` states what would improve
    it; empty if nothing would.
    """

    method: str
    sentence: str
    improvement: str = ""


class ChangeSource(msgspec.Struct, frozen=True, kw_only=True):
    """The rows that are read.

    ``source`` is what follows FROM. ``table`` is the name of a table or view as SQL writes it; empty for a query. ``cursor`` is
    the column with the time or number of the last change; empty without one. ``cursor_timezone`` is the time zone of its values
    if they have none of their own; empty: that of the server. ``lag_seconds`` is None if no lag is configured.
    """

    source: str
    table: str = ""
    cursor: str = ""
    cursor_timezone: str = ""
    lag_seconds: float | None = None
    slack_seconds: float = 10.0


class Restriction(NamedTuple):
    """A condition of the rows that are read, as SQL, and the parameters of its placeholders."""

    condition: str
    parameters: tuple[Parameter, ...] = ()


class ReadPlan(NamedTuple):
    """The rows to read now, None for all, and the state after they were read. ``sweep``: rows were removed since."""

    restriction: Restriction | None
    state: State
    sweep: bool = False


class ChangeMethod(ABC):
    """A way to find the rows that may have changed."""

    observes: ClassVar[bool] = False
    """True if `observe` is needed, in a transaction that ends before that of the rows begins."""
    finds_every_change: ClassVar[bool] = False
    """True if a reading of changes finds every row that was written, so that a sweep needs only the keys."""
    remembers: ClassVar[bool] = True
    """False if every reading is whole and needs nothing of an earlier one."""

    def __init__(self, source: ChangeSource, dialect: SqlDialect, guarantee: Guarantee) -> None:
        self.source = source
        self.dialect = dialect
        self.guarantee = guarantee

    def release(self, session: ReadSession, state: State) -> None:  # noqa: B027 - most methods hold nothing on the server
        """Release what the server holds for readings up to ``state``, which is durable. Called before `observe`."""

    def observe(self, session: ReadSession) -> Observation:  # noqa: ARG002 - most methods need no observation
        """Return facts about the server, read before the transaction of the rows begins."""
        return {}

    @abstractmethod
    def server(self, session: ReadSession) -> str:
        """Return what identifies the server and, for a table, its columns; a change requires a whole reading."""

    @abstractmethod
    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:
        """Return which rows to read in this session, after the reading that ended with ``state`` (None: there is none)."""

    def version(self) -> object | None:
        """Return what differs after every commit, read without a session; None if there is no such thing."""
        return None

    def unfollowed(self, session: ReadSession, observation: Observation) -> Restriction | None:  # noqa: ARG002
        """Return the condition of rows of which only a sweep finds the changes; None: there are none."""
        return None
