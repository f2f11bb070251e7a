"""The interface of the methods that detect changed rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

import msgspec

from connectors.database.port import Parameter, ReadSession, ResultColumn, SqlDialect

State: TypeAlias = Mapping[str, Any]
"""The part of a cursor that belongs to the method; a JSON object."""

Observation: TypeAlias = Mapping[str, Any]
"""Facts about the server that were read in a transaction before the transaction that reads the rows."""

DEFAULT_LAG_SECONDS = 300.0


class Guarantee(msgspec.Struct, frozen=True, kw_only=True):
    """The guarantee of a method, in sentences for operators."""

    method: str
    """The name of the method."""
    sentence: str
    """Which changes a reading finds, and why."""
    improvement: str = ""
    """How a person can improve the guarantee; empty if nothing improves it."""


class Restriction(NamedTuple):
    """The SQL condition for the rows to read, and the parameters of its placeholders."""

    condition: str
    parameters: tuple[Parameter, ...] = ()


class ReadPlan(NamedTuple):
    """The restriction of the rows to read now (None: all rows), and the state after this reading.

    ``sweep``: a sweep is needed, because rows were removed since the last reading.
    """

    restriction: Restriction | None
    state: State
    sweep: bool = False


class ChangeMethod(ABC):
    """A way to find the rows of the source of ``dialect`` that may have changed."""

    observes: ClassVar[bool] = False
    """True if `observe` must run in a separate transaction, which ends before the transaction of the rows begins."""
    finds_every_change: ClassVar[bool] = False
    """True if a reading of changes finds every row that was written, so that a sweep needs only the keys."""
    remembers: ClassVar[bool] = True
    """False if every reading is whole and needs no state of an earlier reading."""

    def __init__(self, dialect: SqlDialect, guarantee: Guarantee) -> None:
        self.dialect = dialect
        self.options = dialect.options
        self.guarantee = guarantee

    @property
    def lag_seconds(self) -> float:
        """How long a written row may remain invisible, for methods that can't observe running transactions."""
        return DEFAULT_LAG_SECONDS if self.options.lag_seconds is None else self.options.lag_seconds

    def release(self, session: ReadSession, state: State) -> None:  # noqa: B027 - most methods hold nothing on the server
        """Release what the server holds for readings up to ``state``, which is durable. Called before `observe`."""

    def observe(self, session: ReadSession) -> Observation:  # noqa: ARG002 - most methods need no observation
        """Return facts about the server, read before the transaction of the rows begins."""
        return {}

    @abstractmethod
    def server(self, session: ReadSession) -> str:
        """Return a value that identifies the server and, for a table, its columns. If it changes, everything is read."""

    @abstractmethod
    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:
        """Return the rows to read in this session. ``state``: the state after the last reading; None: there is none."""

    def version(self) -> object | None:
        """Return a value that changes with every commit, without a session; None if the database has no such value."""
        return None

    def unfollowed(self, session: ReadSession, observation: Observation) -> Restriction | None:  # noqa: ARG002
        """Return the condition for rows with changes that only a sweep finds; None: there are no such rows."""
        return None


MethodChooser: TypeAlias = Callable[[ReadSession, SqlDialect, Sequence[ResultColumn]], ChangeMethod]
"""A function that chooses the method for a session, a dialect and the columns of the source."""
