"""The interface of the methods that detect changed rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

import msgspec

from connectors.database.port import Parameter, ReadSession, ResultColumn, SqlDialect

State: TypeAlias = Mapping[str, Any]
"""The method's part of a cursor, a JSON object."""

Observation: TypeAlias = Mapping[str, Any]
"""Facts about the server, which may have been read before the transaction that reads the rows began."""

DEFAULT_LAG_SECONDS = 300.0


class Guarantee(msgspec.Struct, frozen=True, kw_only=True):
    """What a method guarantees, in sentences for operators."""

    method: str
    """The name of the method."""
    sentence: str
    """Which changes a reading finds, and why."""
    improvement: str = ""
    """How a person can improve the guarantee; empty if nothing improves it."""


class Restriction(NamedTuple):
    """The SQL condition that selects the rows to read, and the values of its placeholders."""

    condition: str
    parameters: tuple[Parameter, ...] = ()


class ReadPlan(NamedTuple):
    """What to read now. ``restriction``: selects the rows (None: all rows). ``state``: the state after this reading.

    ``sweep``: a sweep is needed, because rows were removed since the last reading.
    """

    restriction: Restriction | None
    state: State
    sweep: bool = False


class ChangeMethod(ABC):
    """A method that finds the rows that may have changed. ``dialect`` has the source's options."""

    observes: ClassVar[bool] = False
    """True if `observe` must run in a separate transaction that ends before the transaction that reads the rows."""
    finds_every_change: ClassVar[bool] = False
    """True if a reading of changes finds every row that was written, so that a sweep needs only the keys."""
    remembers: ClassVar[bool] = True
    """False if every reading is whole, so that no state of an earlier reading is needed."""

    def __init__(self, dialect: SqlDialect, guarantee: Guarantee) -> None:
        self.dialect = dialect
        self.options = dialect.options
        self.guarantee = guarantee

    @property
    def lag_seconds(self) -> float:
        """The time for which a written row may stay invisible. For methods that can't observe running transactions."""
        return DEFAULT_LAG_SECONDS if self.options.lag_seconds is None else self.options.lag_seconds

    def release(self, session: ReadSession, state: State) -> None:  # noqa: B027 - most methods hold nothing on the server
        """Let the server release what it holds for readings up to the durable ``state``. Called before `observe`."""

    def observe(self, session: ReadSession) -> Observation:  # noqa: ARG002 - most methods need no observation
        """Return facts about the server, read before the transaction that reads the rows begins."""
        return {}

    @abstractmethod
    def server(self, session: ReadSession) -> str:
        """Return a value that identifies the server (for some methods also the table). If it changes, everything is read."""

    @abstractmethod
    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:
        """Return what to read in this session. ``state``: the state after the last reading; None if no state is known."""

    def version(self) -> object | None:
        """Return a value that changes with every commit; None if there is none. This needs no session."""
        return None

    def unfollowed(self, session: ReadSession, observation: Observation) -> Restriction | None:  # noqa: ARG002
        """Return the condition that selects rows with changes that only a sweep finds; None if no such row can exist."""
        return None


MethodChooser: TypeAlias = Callable[[ReadSession, SqlDialect, Sequence[ResultColumn]], ChangeMethod]
"""A function that chooses the method for a session, a dialect and the columns of the source."""
