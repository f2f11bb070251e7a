"""MariaDB and MySQL. The server sends each row as one line of text, because PyMySQL is slow with single values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, ClassVar, Literal

import pymysql
from msgspec.structs import replace
from polars.selectors import all as all_columns
from polars.selectors import by_name
from pymysql.constants import CR, FIELD_TYPE
from pymysql.cursors import SSCursor

from connectors.database.address import parse_table
from connectors.database.frames import apply_settings, parse_lines
from connectors.database.limits import Deadline
from connectors.database.mariadb_failure import error_of
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
    TextFault,
    bind,
)
from ingestd.sdk import SourceBroken, SourceUnavailable

_TYPES = {
    number: name.lower()
    for name, number in vars(FIELD_TYPE).items()
    if name.isupper() and name not in {"CHAR", "INTERVAL"}  # other names of TINY and ENUM
}
_TEXTS = frozenset(
    {"varchar", "var_string", "string", "tiny_blob", "medium_blob", "long_blob", "blob", "json", "enum", "set"}
)
_DUPLICATE = 1060  # two columns have one name
_BYTES = 63  # the character set of bytes
_YES = frozenset({"1", "true", "yes", "on"})
_CONNECTION_SETTINGS = frozenset(
    {"unix_socket", "ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_cert", "ssl_verify_identity", "program_name"}
)
_NULL, _NO_TEXT, _TAB = "_utf8mb4 0x5C4E", "_utf8mb4 0x5C55", "_utf8mb4 0x09"
"""The texts ``\\N`` and ``\\U``, and a tab; in hexadecimal, because the meaning of a backslash depends on the SQL mode."""
_TOO_LONG = "has no text, most likely because it would be longer than the server's max_allowed_packet"

_EXPRESSIONS = {
    "float": "CAST(CAST({value} AS DOUBLE) AS CHAR)",  # the text of a FLOAT has only six digits, of a DOUBLE all digits
    "datetime": "REPLACE({text}, ' ', 'T')",
    "timestamp": "CONCAT(REPLACE({text}, ' ', 'T'), '+00:00')",  # the zone of the session is UTC
    "bit": "CAST(CAST({value} AS UNSIGNED) AS CHAR)",
    "geometry": "ST_AsText({value})",
}
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})\.(\d{1,4})")
# The oldest versions that have JSON_QUOTE and a time limit for statements.
_OLDEST_MARIADB, _OLDEST_MYSQL = (10, 2, 3), (5, 7, 8)


class MariadbDialect(SqlDialect):
    """The SQL that both MariaDB and MySQL support."""

    name: ClassVar[Literal["mariadb"]] = "mariadb"

    def quote(self, identifier: str) -> str:
        """Return an identifier between backticks, because backticks have the same meaning in every SQL mode."""
        return "`" + identifier.replace("`", "``") + "`"

    @property
    def primary_key(self) -> tuple[str, Sequence[Parameter]]:
        """See `SqlDialect.primary_key`."""
        *schema, table = parse_table(str(self.options.table))
        in_schema = f"table_schema = {PLACEHOLDER}" if schema else "table_schema = DATABASE()"
        return (
            "SELECT column_name AS name, ordinal_position AS number FROM information_schema.key_column_usage"
            f" WHERE constraint_name = 'PRIMARY' AND table_name = {PLACEHOLDER} AND {in_schema}"
        ), (table, *schema)

    def exact_text(self, column: ResultColumn) -> str:
        """See `SqlDialect.exact_text`."""
        value = column.expression or self.quote(column.name)
        text = f"CAST({value} AS CHAR)"
        if column.kind == "binary":
            return {
                "hex": f"LOWER(HEX({value}))",
                "base64": f"TO_BASE64({value})",  # inserts a line end after each 76 characters
            }.get(self.options.binary, f"CASE WHEN {value} IS NOT NULL THEN '' END")  # the bytes are not sent
        if column.type == "string" and self.options.char_padding == "trim":
            return f"RTRIM({text})"
        return _EXPRESSIONS.get(column.type, "{text}").format(value=value, text=text)

    def line(self, columns: Sequence[ResultColumn]) -> str:
        """Return the SQL expression for a row as one line, without the line end.

        JSON_QUOTE escapes each text. REPLACE is not used, because its time grows with the square of the text's length. For
        20,000 line ends in a megabyte it takes seconds, and the server can't cancel it.
        """
        fields = []
        for column in columns:
            text = self.exact_text(column)
            if self.is_quoted(column):
                text = f"JSON_QUOTE({text})"
            value = column.expression or self.quote(column.name)
            fields.append(f"IFNULL({text}, IF({value} IS NULL, {_NULL}, {_NO_TEXT}))")
        return f"CONCAT_WS({_TAB}, {', '.join(fields)})"

    def is_quoted(self, column: ResultColumn) -> bool:
        """Return whether the values of a column are sent between quotes, because they may hold a line end."""
        return column.type in _TEXTS and (column.kind != "binary" or self.options.binary == "base64")

    def row_hash(self, columns: Sequence[ResultColumn]) -> str:
        """See `SqlDialect.row_hash`. The server computes the hash of the row's `line`."""
        return f"LEFT(SHA2({self.line(columns)}, 256), 32)"


class MariadbDatabase(Database):
    """A MariaDB or MySQL server."""

    def __init__(self, options: DatabaseOptions) -> None:
        self._options = options
        self.dialect: MariadbDialect = MariadbDialect(options)

    @contextmanager
    def open(self) -> Iterator[ReadSession]:
        """See `Database.open`."""
        try:
            connection = self._connect()
        except pymysql.Error as error:
            raise error_of(self._options, error, None, self._connect) from None
        with closing(connection):
            session = MariadbSession(connection, self.dialect)
            try:
                session.begin()
                yield session
            except pymysql.Error as error:
                raise error_of(self._options, error, session, self._connect) from None

    def _connect(self) -> pymysql.Connection[Any]:
        address = self._options.address()
        unknown = sorted(set(address.query) - _CONNECTION_SETTINGS)
        if unknown:
            known = ", ".join(sorted(_CONNECTION_SETTINGS))
            raise SourceBroken(
                f"The url has the settings {', '.join(unknown)}, which are not known; known are {known}."
            )
        settings: dict[str, Any] = {
            "host": address.host or "localhost",
            "port": int(address.port or 3306),
            "user": address.user or None,
            "password": address.password or "",
            "database": address.database or None,
            "charset": "utf8mb4",
            "use_unicode": False,
            "conv": {},
            "connect_timeout": self._options.connect_timeout_seconds,
            "read_timeout": self._options.connect_timeout_seconds,  # the greeting and the login
            "write_timeout": self._options.statement_timeout_seconds,
            "program_name": "ingestd",
            "cursorclass": SSCursor,
            "autocommit": None,
            **{name: value for name, value in address.query.items() if not name.startswith("ssl_verify")},
            **{name: value in _YES for name, value in address.query.items() if name.startswith("ssl_verify")},
        }
        try:
            connection: pymysql.Connection[Any] = pymysql.connect(**settings)
        except pymysql.OperationalError as error:
            if error.args[0] != CR.CR_SERVER_LOST or "timed out" not in str(error):
                raise
            raise SourceUnavailable(
                f"The database {address} can't be reached: the server accepted the connection and sent nothing for"
                f" {self._options.connect_timeout_seconds} seconds (connect_timeout_seconds)."
            ) from None
        except OSError as error:  # a file; for the network, PyMySQL raises its own errors
            raise SourceBroken(
                f"A file of ssl_ca, ssl_cert or ssl_key in the url can't be used: {error.strerror or error}."
            ) from None
        silence: Any = connection  # PyMySQL has no public setting for the read timeout after the login
        silence._read_timeout = self._options.statement_timeout_seconds  # noqa: SLF001
        return connection


class MariadbSession(ReadSession):
    """A transaction of one connection."""

    def __init__(self, connection: pymysql.Connection[Any], dialect: MariadbDialect) -> None:
        self._connection = connection
        self.number = "0"
        self._options = dialect.options
        self._dialect = dialect
        self._deadline = Deadline(dialect.options)

    def begin(self) -> None:
        """Set the limits of the session and begin the transaction."""
        options = self._options
        total = max(1, round(options.read_timeout_seconds))
        is_mariadb = self.is_mariadb()
        limit = f"max_statement_time = {total}" if is_mariadb else f"max_execution_time = {total * 1000}"
        lock = max(1, round(options.lock_timeout_seconds))
        consumer_seconds = max(60, total)  # how long the server waits for the mapping of a batch
        self.number = str(self.scalar("SELECT CONNECTION_ID()"))
        for statement in (
            f"SET SESSION time_zone = '+00:00', lock_wait_timeout = {lock}, net_write_timeout = {consumer_seconds}, {limit}",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        ):
            with closing(self._connection.cursor()) as cursor:
                cursor.execute(statement)

    def is_mariadb(self) -> bool:
        """Return True if the server is MariaDB, False if it is MySQL.

        Raises:
            SourceBroken: the version of the server is too old.
        """
        version = str(self.scalar("SELECT VERSION()"))
        is_mariadb = "mariadb" in version.lower()
        product, oldest = ("MariaDB", _OLDEST_MARIADB) if is_mariadb else ("MySQL", _OLDEST_MYSQL)
        found = _VERSION.match(version)
        if found is not None and tuple(map(int, found.groups())) < oldest:
            raise SourceBroken(
                f"The database {self._options.address()} is {product} {found[0]}; the oldest supported version is"
                f" {'.'.join(map(str, oldest))}. Upgrade the server, or read a replica with a newer version."
            )
        return is_mariadb

    def columns(self, source: str) -> list[ResultColumn]:
        """See `ReadSession.columns`."""
        with closing(self._connection.cursor()) as cursor:
            try:
                cursor.execute(f"SELECT * FROM {source} LIMIT 0")
            except pymysql.OperationalError as error:
                if error.args[0] != _DUPLICATE:
                    raise
                name = str(error.args[1]).partition("'")[2].rstrip("'")
                raise SourceBroken(
                    f"The query has more than one column {name}: give each column a different name with AS."
                ) from None
            fields: list[Any] = cursor._result.fields  # no public attribute has the character set  # noqa: SLF001
            return [_column(field.name, field.type_code, field.charsetnr) for field in fields]

    def frames(
        self, columns: Sequence[ResultColumn], source: str, rest: str = "", parameters: Sequence[Parameter] = ()
    ) -> Iterator[Frame]:
        """See `ReadSession.frames`."""
        sql = bind(f"SELECT {self._dialect.line(columns)} FROM {source} {rest}", parameters, _literal)
        lines: list[bytes] = []
        size = 0
        cursor: Any = self._connection.cursor()
        try:
            cursor.execute(sql)
            while fetched := cursor.fetchone():
                if fetched[0] is None:
                    raise SourceBroken(
                        f"The database {self._options.address()} can't send a row, because it is longer than the server's"
                        " max_allowed_packet. Increase that setting, or leave the long column out in a query."
                    )
                lines.append(fetched[0] + b"\n")
                size += len(lines[-1])
                if len(lines) >= self._options.batch_rows or size >= self._options.batch_bytes:
                    yield self._frame(lines, columns)
                    lines, size = [], 0
                    self._deadline.restart()
                    self._deadline.check()
        finally:
            # Otherwise PyMySQL would read an abandoned result to its end before the connection is closed.
            if cursor._result is not None and cursor._result.unbuffered_active:  # noqa: SLF001
                cursor._result.unbuffered_active = False  # noqa: SLF001
        yield self._frame(lines, columns)

    def scalar(self, sql: str, parameters: Sequence[Parameter] = ()) -> str | None:
        """See `ReadSession.scalar`."""
        rows = self.rows(bind(sql, parameters, _literal))
        return rows[0][0] if rows else None

    def rows(self, sql: str) -> list[tuple[str | None, ...]]:
        """Return the rows of a short statement as text."""
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(sql)
            return [
                tuple(None if value is None else value.decode("utf-8", "replace") for value in row)
                for row in cursor.fetchall()
            ]

    def _frame(self, lines: Sequence[bytes], columns: Sequence[ResultColumn]) -> Frame:
        frame = self._without_unsent(parse_lines(lines, columns))
        quoted = [column for column in columns if self._dialect.is_quoted(column)]
        records = frame.records.with_columns(
            by_name(*(column.name for column in quoted)).str.strip_prefix('"').str.strip_suffix('"'),
        )
        base64 = by_name(*(column.name for column in quoted if column.kind == "binary"))
        frame = replace(frame, records=records.with_columns(base64.str.replace_all("\n", "", literal=True)))
        return apply_settings(frame, columns, self._options)

    @staticmethod
    def _without_unsent(frame: Frame) -> Frame:
        """Return the frame with a fault for each row, if the server could not convert one of its values to text."""
        unsent = frame.records.select(all_columns() == "\\U")
        names = [name for name in unsent.columns if unsent.get_column(name).any()]
        if not names:
            return frame
        faults = dict(frame.faults)
        for name in names:
            for row in unsent.get_column(name).arg_true():
                faults.setdefault(row, TextFault(name, f"Column {name} {_TOO_LONG}."))
        records = frame.records.with_columns(by_name(*names).replace("\\U", None))
        return Frame(records=records, faults=faults)


def _column(name: bytes | str, type_code: int, character_set: int) -> ResultColumn:
    type_ = _TYPES.get(type_code, str(type_code))
    kind: Kind = "text"
    if type_ in _TEXTS and type_ != "json":
        kind = "binary" if character_set == _BYTES else "padded" if type_ == "string" else "text"
    return ResultColumn(name=name.decode() if isinstance(name, bytes) else name, type=type_, kind=kind)


def _literal(value: Parameter) -> str:
    """Return the SQL literal of a value. A text is written in hexadecimal, so that the SQL mode has no effect."""
    if isinstance(value, int | float):
        return repr(value)
    return f"_utf8mb4 0x{value.encode().hex()}" if value else "''"
