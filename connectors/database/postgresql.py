"""PostgreSQL: rows are read with COPY, in one read-only transaction that does not change the server's session.

Every setting is local to the transaction, no statement is prepared by name, and no startup option is sent except
``client_encoding``. So a reading works through PgBouncer with transaction pooling, and changes no setting of the pool.
"""

from __future__ import annotations

import math
import select
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, Literal

import psycopg
from psycopg import generators, pq
from psycopg.abc import PQGen
from psycopg.errors import error_from_result
from psycopg.pq.abc import PGresult
from psycopg.waiting import Ready

from connectors.database.frames import apply_settings, parse_lines
from connectors.database.limits import Deadline
from connectors.database.options import DatabaseOptions
from connectors.database.port import (
    PLACEHOLDER,
    Database,
    Frame,
    Kind,
    Parameter,
    ReadSession,
    ResultColumn,
    SqlDialect,
    bind,
)
from connectors.database.postgresql_connection import connect, libpq_parameters
from connectors.database.postgresql_failure import LOCK_HOLDERS, statement_error

_KINDS: dict[int, Kind] = {17: "binary", 1042: "padded", 700: "number", 701: "number", 1700: "number", 790: "money"}
_BOOLEAN, _TIMESTAMP, _TIMESTAMP_WITH_ZONE = "boolean", "timestamp without time zone", "timestamp with time zone"
_READABLE, _WRITABLE = int(Ready.R), int(Ready.W)
_CANCEL_SECONDS = 5.0
_LOCK_SHARE = 0.8
"""The share of the lock timeout after which the holders of the lock are listed. After the timeout, no list is possible."""
_SERVER_MARGIN_MS = 5_000


class PostgresqlDialect(SqlDialect):
    """PostgreSQL's SQL. COPY writes values of every type as text, so only some columns need an expression."""

    name: ClassVar[Literal["postgresql"]] = "postgresql"

    @property
    def primary_key(self) -> tuple[str, Sequence[Parameter]]:
        """See `SqlDialect.primary_key`."""
        return (
            "SELECT attname AS name, array_position(conkey, attnum) AS number FROM pg_constraint JOIN pg_attribute"
            f" ON attrelid = conrelid AND attnum = ANY (conkey) WHERE contype = 'p' AND conrelid = to_regclass({PLACEHOLDER})"
        ), (self.table,)

    def exact_text(self, column: ResultColumn) -> str:
        """See `SqlDialect.exact_text`."""
        value = column.expression or self.quote(column.name)
        match column.kind:
            case "binary" if self.options.binary != "keep":
                return {
                    "hex": f"encode({value}, 'hex')",
                    "base64": f"translate(encode({value}, 'base64'), E'\\n', '')",
                    "reject": f"CASE WHEN {value} IS NOT NULL THEN '' END",  # the bytes are not sent
                }[self.options.binary]
            case "padded" if self.options.char_padding == "trim":
                return f"CAST({value} AS text)"
            case "money" if self.options.money == "number":
                return f"CAST({value} AS numeric)"
        base = column.type.partition("(")[0] + column.type.partition(")")[2]
        if base == _BOOLEAN:
            return f"CAST({value} AS text)"
        if base in {_TIMESTAMP, _TIMESTAMP_WITH_ZONE}:
            # The text of infinity and of a time before Christ is kept. The transaction's zone is UTC, which is written as +00.
            zone = " || ':00'" if base == _TIMESTAMP_WITH_ZONE else ""
            ordinary = f"{value} >= '0001-01-01' AND {value} < 'infinity'"
            return f"CASE WHEN {ordinary} THEN replace(CAST({value} AS text), ' ', 'T'){zone} ELSE CAST({value} AS text) END"
        return value

    def row_hash(self, columns: Sequence[ResultColumn]) -> str:
        """See `SqlDialect.row_hash`. In the text of a composite value, NULL is nothing, and the empty text is ``""``."""
        row = f"CAST(ROW({', '.join(map(self.exact_text, columns))}) AS text)"
        return f"encode(substr(sha256(convert_to({row}, getdatabaseencoding())), 1, 16), 'hex')"


class PostgresqlDatabase(Database):
    """A PostgreSQL server. The connection is direct, or through a pooler."""

    def __init__(self, options: DatabaseOptions) -> None:
        self._options = options
        self.dialect = PostgresqlDialect(options)

    @contextmanager
    def open(self) -> Iterator[ReadSession]:
        """See `Database.open`."""
        session = PostgresqlSession(connect(self._options, finds_code=True), self.dialect)
        try:
            session.begin()
            yield session
            session.run("COMMIT")
        except psycopg.Error as error:
            raise statement_error(self._options, error, session) from None
        finally:
            session.close()


class PostgresqlSession(ReadSession):
    """One transaction. Statements are sent with libpq, because psycopg would create an object for each value or row."""

    def __init__(self, connection: psycopg.Connection[Any], dialect: SqlDialect) -> None:
        self._pid = 0
        self._list_at = math.inf
        self.holders: list[tuple[str, ...]] | None = None
        """The programs that held the lock for which the last statement waited; None if they were not listed."""
        self._connection = connection
        self._pgconn = connection.pgconn
        self._options = dialect.options
        self._dialect = dialect
        self._deadline = Deadline(dialect.options)

    def begin(self) -> None:
        """Begin the transaction, and set the settings, which are valid only in this transaction."""
        whole_ms = round(self._options.read_timeout_seconds * 1000)
        settings = {
            "row_security": "off",  # if a policy hides rows, raise an error instead of reading fewer rows
            # This limit ends a statement of a daemon that died. While the daemon runs, its own deadline is earlier, and the
            # error of that deadline names the setting.
            "statement_timeout": str(whole_ms + _SERVER_MARGIN_MS),
            "lock_timeout": str(max(1, round(self._options.lock_timeout_seconds * 1000))),
            # While the daemon maps rows between two statements, the session is idle.
            "idle_in_transaction_session_timeout": str(whole_ms),
            "timezone": "UTC",
            "datestyle": "ISO, YMD",
            "intervalstyle": "iso_8601",
            "extra_float_digits": "1",
            "bytea_output": "hex",
        }
        if self._connection.info.parameter_status("server_encoding") == "SQL_ASCII":
            settings["client_encoding"] = "SQL_ASCII"  # otherwise a text that is not UTF-8 would end the reading
        local = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in settings.items())
        begun = self.run(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {local}; SELECT pg_backend_pid()")
        self._pid = int(begun.get_value(0, 0) or 0)

    def columns(self, source: str) -> list[ResultColumn]:
        """See `ReadSession.columns`."""
        # PostgreSQL refuses to prepare several statements in one text. A prepared statement without a name is safe in a pool.
        self._send(lambda: self._pgconn.send_prepare(b"", f"SELECT * FROM {source}".encode()))
        described = self._send(lambda: self._pgconn.send_describe_prepared(b""))
        types = [(described.ftype(at), described.fmod(at)) for at in range(described.nfields)]
        if not types:
            return []
        named = self.run(f"SELECT {', '.join(f'format_type({oid}, {modifier})' for oid, modifier in types)}")
        return [
            ResultColumn(
                name=(described.fname(at) or b"").decode("utf-8", "replace"),
                type=(named.get_value(0, at) or b"").decode(),
                kind=_KINDS.get(oid, "text"),
            )
            for at, (oid, _) in enumerate(types)
        ]

    def frames(
        self, columns: Sequence[ResultColumn], source: str, rest: str = "", parameters: Sequence[Parameter] = ()
    ) -> Iterator[Frame]:
        """See `ReadSession.frames`."""
        sql = bind(self._dialect.select(columns, source, rest), parameters, self._literal)
        self.run(f"COPY ({sql}) TO STDOUT")
        receive = self._pgconn.get_copy_data
        most_rows, most_bytes = self._options.batch_rows, self._options.batch_bytes
        lines: list[memoryview] = []
        size = 0
        while True:
            length, line = receive(1)
            if length > 0:
                lines.append(line)
                size += length
                if len(lines) < most_rows and size < most_bytes:
                    continue
            elif length == 0:
                self._wait(_READABLE)
                self._pgconn.consume_input()
                continue
            else:
                self._checked(self._drive(generators.fetch_many(self._pgconn)))
                yield self._frame(lines, columns)
                return
            yield self._frame(lines, columns)
            lines, size = [], 0
            self._deadline.restart()
            self._deadline.check()

    def scalar(self, sql: str, parameters: Sequence[Parameter] = ()) -> str | None:
        """See `ReadSession.scalar`."""
        result = self.run(bind(sql, parameters, self._literal))
        value = result.get_value(0, 0) if result.ntuples else None
        return None if value is None else value.decode("utf-8", "surrogateescape")

    def rows(self, sql: str) -> list[tuple[str, ...]]:
        """Return the rows of a short statement as text. NULL becomes the empty text."""
        return _rows_of(self.run(sql))

    def run(self, sql: str) -> PGresult:
        """Run statements with PostgreSQL's simple query protocol, and return the last result."""
        return self._send(lambda: self._pgconn.send_query(sql.encode()))

    def restart(self) -> bool:
        """Begin another transaction after an error. Return False if the connection is broken."""
        if self._pgconn.status != pq.ConnStatus.OK:
            return False
        self.run("ROLLBACK")
        self.begin()
        return True

    def close(self) -> None:
        """Close the connection. Cancel a running statement: otherwise the server would execute it to its end."""
        if self._pgconn.status == pq.ConnStatus.OK and self._pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
            with suppress(psycopg.Error):  # the server may be unreachable, and the connection is closed in any case
                self._connection.cancel_safe(timeout=_CANCEL_SECONDS)
        self._connection.close()

    def _frame(self, lines: Sequence[memoryview], columns: Sequence[ResultColumn]) -> Frame:
        return apply_settings(parse_lines(lines, columns), columns, self._options, native_binary=True)

    def _literal(self, value: Parameter) -> str:
        """Return a value as a literal without a type. PostgreSQL then uses the type of the compared column."""
        return pq.Escaping(self._pgconn).escape_literal(str(value).encode()).decode()

    def _send(self, send: Callable[[], None]) -> PGresult:
        self._deadline.restart()
        self.holders = None
        self._list_at = time.monotonic() + _LOCK_SHARE * self._options.lock_timeout_seconds if self._pid else math.inf
        send()
        results = self._drive(generators.execute(self._pgconn))
        self._list_at = math.inf  # a statement gets its locks before its first result
        return self._checked(results)

    def _checked(self, results: list[PGresult]) -> PGresult:
        for result in results:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                raise error_from_result(result)
        return results[-1]

    def _drive(self, communication: PQGen[list[PGresult]]) -> list[PGresult]:
        """Run a generator of psycopg within the time limits. The generator itself does not wait for I/O."""
        try:
            wanted = next(communication)
            while True:
                wanted = communication.send(self._wait(wanted))
        except StopIteration as end:
            results: list[PGresult] = end.value
            return results

    def _wait(self, wanted: int) -> Ready:
        """Wait until the socket is ready.

        Raises:
            SourceUnavailable: a time limit is exceeded.
        """
        poll = select.poll()
        writable = wanted & _WRITABLE
        poll.register(
            self._pgconn.socket, (select.POLLIN if wanted & _READABLE else 0) | (select.POLLOUT if writable else 0)
        )
        left = self._deadline.left()
        until_list = self._list_at - time.monotonic()
        events = poll.poll(math.ceil(max(0.0, min(left, until_list)) * 1000)) if left else []
        if not events and until_list < left:
            self._list_at = math.inf
            self.holders = self._list_holders()
            return self._wait(wanted)
        if not events:
            raise self._deadline.exceeded()
        ((_, event),) = events
        self._deadline.restart()
        is_writable = bool(writable and event & select.POLLOUT)
        is_readable = bool(event & ~select.POLLOUT)
        return Ready((_READABLE if is_readable else 0) | (_WRITABLE if is_writable else 0))

    def _list_holders(self) -> list[tuple[str, ...]] | None:
        """List the programs that hold the lock, with a second connection. Return None if they can't be listed."""
        try:
            with psycopg.connect(**libpq_parameters(self._options)) as connection:
                result = connection.pgconn.exec_(LOCK_HOLDERS.format(pid=self._pid).encode())
                return _rows_of(result) if result.status == pq.ExecStatus.TUPLES_OK else None
        except psycopg.Error:
            return None  # the timeout is then reported without the holders


def _rows_of(result: PGresult) -> list[tuple[str, ...]]:
    """Return the rows of a result as text. NULL becomes the empty text."""
    return [
        tuple((result.get_value(row, at) or b"").decode("utf-8", "replace") for at in range(result.nfields))
        for row in range(result.ntuples)
    ]
