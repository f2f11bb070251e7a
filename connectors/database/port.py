"""The interface between the database connector and each kind of database.

A `Database` is a configured address. `Database.open` starts one read-only transaction, a `ReadSession`, which sees one state of
the database. A session yields frames: polars columns of exact text, limited in rows and in bytes. For speed, the database or
polars converts the values to text. Only SQLite needs Python code for each value.

Every method raises only `SourceUnavailable` (retry later) or `SourceBroken` (a person must act). No message shows a password.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import msgspec
import polars as pl

from connectors.database.address import parse_table
from connectors.database.options import DatabaseOptions

Parameter: TypeAlias = str | int | float
"""The value of a placeholder in a statement. A text that is compared with a column is converted to the column's type."""

Kind: TypeAlias = Literal["text", "binary", "padded", "number", "money"]
"""Kinds of values. Each kind except ``text`` has a setting. ``padded`` is ``char(n)``, a ``number`` may be NaN or infinite."""

PLACEHOLDER = "\x00"
"""The mark of a parameter in the statements of this package. No database accepts this character in a statement."""
ALIAS = "ingestd_rows"
"""The alias of the table or query in a statement, for qualified column names."""


class TextFault(NamedTuple):
    """Why a row is rejected, and the column with the fault."""

    field: str
    reason: str


class ResultColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a result."""

    name: str
    type: str
    """The name of the column's type in the database, such as ``timestamp with time zone``."""
    kind: Kind = "text"
    """The kind of the column's values. It decides which setting applies to the values."""
    expression: str = ""
    """The SQL expression of the value. Empty: the value is that of the column ``name``."""


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a result."""

    records: pl.DataFrame
    """A `pl.String` column for each requested column, in the order of the request. Null means NULL in the database."""
    faults: Mapping[int, TextFault] = msgspec.field(default_factory=dict)
    """Faults by row index. A faulty row has a value that has no exact text, and is null in ``records``."""


class SqlDialect(ABC):
    """The SQL of one kind of database, for the configured table or query."""

    name: ClassVar[Literal["postgresql", "sqlite", "mariadb", "sqlserver", "oracle"]]
    alias_keyword: ClassVar[str] = "AS "
    """The keyword between a table or query and its alias."""
    storage_class: ClassVar[str] = "'text'"
    """The SQL that returns a value's kind (integer, real, text, null or blob), with ``{}`` in place of the value."""

    def __init__(self, options: DatabaseOptions) -> None:
        self.options = options

    @property
    def table(self) -> str:
        """The name of the configured table as SQL writes it; empty for a query."""
        return ".".join(map(self.quote, parse_table(self.options.table))) if self.options.table is not None else ""

    @property
    def source(self) -> str:
        """The SQL after FROM: the configured table or query, with the alias `ALIAS`."""
        # The next line begins with a line feed, because the query may end in a comment.
        query = f"({str(self.options.query).strip().rstrip(';')}\n)"
        return f"{self.table or query} {self.alias_keyword}{ALIAS}"

    @property
    def primary_key(self) -> tuple[str, Sequence[Parameter]]:
        """A query for ``name`` and ``number`` of each column of the primary key, and its parameters. Empty: no such query."""
        return "", ()

    def select(self, columns: Sequence[ResultColumn], source: str, rest: str = "") -> str:
        """Return a statement that selects the exact text of ``columns``."""
        return f"SELECT {', '.join(map(self.exact_text, columns))} FROM {source} {rest}".rstrip()

    def quote(self, identifier: str) -> str:
        """Return an identifier as SQL writes it."""
        return '"' + identifier.replace('"', '""') + '"'

    @abstractmethod
    def exact_text(self, column: ResultColumn) -> str:
        """Return the SQL expression of a column's exact text.

        A date with a time is written as in ISO 8601, a boolean as ``true`` or ``false``.
        """

    def row_hash(self, columns: Sequence[ResultColumn]) -> str:  # noqa: ARG002 - a file is read whole
        """Return the SQL for 128 bits of the SHA-256 of a row's exact text, in hexadecimal; empty if there is no such SQL.

        The hashed text distinguishes NULL from the empty text, and shows where each value ends.
        """
        return ""


class ReadSession(ABC):
    """One read-only transaction, which sees one state of the database."""

    @abstractmethod
    def columns(self, source: str) -> list[ResultColumn]:
        """Return the columns of ``source`` (the SQL after FROM) without reading rows. Names may repeat."""

    @abstractmethod
    def frames(
        self, columns: Sequence[ResultColumn], source: str, rest: str = "", parameters: Sequence[Parameter] = ()
    ) -> Iterator[Frame]:
        """Yield the rows of ``SELECT columns FROM source rest`` in at least one frame. The last frame may be empty.

        A frame has at most ``batch_rows`` rows, and ends with the row that exceeds ``batch_bytes``. ``parameters`` replace the
        placeholders of ``rest`` in order.
        """

    @abstractmethod
    def scalar(self, sql: str, parameters: Sequence[Parameter] = ()) -> str | None:
        """Return the first value of a statement's only row as text; None if the value is NULL, or if there is no row."""


class Database(ABC):
    """A configured database. No connection stays open between two sessions."""

    dialect: SqlDialect

    @abstractmethod
    def open(self) -> AbstractContextManager[ReadSession]:
        """Connect and begin a transaction. The end of the context ends the transaction and the connection."""

    def primary_key(self) -> tuple[str, ...]:
        """Return the columns of the table's primary key, in order; empty if no key is known."""
        query, parameters = self.dialect.primary_key
        if not query:
            return ()
        column = ResultColumn(name="name", type="text")
        source = f"({query}) {self.dialect.alias_keyword}{ALIAS}"
        with self.open() as session:
            frames = list(session.frames([column], source, "ORDER BY number", parameters))
        return tuple(name for frame in frames for name in frame.records["name"])


def bind(sql: str, parameters: Sequence[Parameter], literal: Callable[[Parameter], str]) -> str:
    """Return ``sql`` with each placeholder replaced by the ``literal`` of its parameter, in order."""
    first, *others = sql.split(PLACEHOLDER)
    return first + "".join(literal(value) + part for value, part in zip(parameters, others, strict=True))
