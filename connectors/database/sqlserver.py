"""SQL Server. Tests check the SQL of this module with a parser; no test executes it on a server."""

from __future__ import annotations

from contextlib import closing
from typing import Any, ClassVar, Literal

from connectors.database.driver import DriverDatabase, DriverDialect, DriverSession
from connectors.database.failure import login_refused, one_line
from connectors.database.options import DatabaseOptions
from connectors.database.port import Kind, ResultColumn
from ingestd.sdk import SourceBroken, SourceError, SourceUnavailable

ONE_STATE = "SET TRANSACTION ISOLATION LEVEL SNAPSHOT"
"""With this isolation, a transaction sees one state of the database. It neither waits for writers nor delays writers."""

_SETTINGS = (
    "applicationintent", "authentication", "encrypt", "hostnameincertificate", "ipaddresspreference", "multisubnetfailover",
    "packetsize", "servercertificate", "serverspn", "trusted_connection", "trustservercertificate",
)  # fmt: skip
_NO_SNAPSHOT = ("snapshot isolation", "3952")
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("binary", "varbinary", "image"), "binary"),
    **dict.fromkeys(("char", "nchar"), "padded"),
}
_TEXT = "CONVERT(nvarchar(max), {value})"
_EXPRESSIONS = {
    "bit": "CASE {value} WHEN 1 THEN N'true' WHEN 0 THEN N'false' END",
    "float": "CONVERT(nvarchar(max), {value}, 3)",  # 17 digits identify the number exactly
    "real": "CONVERT(nvarchar(max), {value}, 3)",
    "money": "CONVERT(nvarchar(max), {value}, 2)",  # four digits after the point, no separator
    "smallmoney": "CONVERT(nvarchar(max), {value}, 2)",
    "date": "CONVERT(nvarchar(max), {value}, 23)",
    "time": "CONVERT(nvarchar(max), {value}, 121)",
    "datetime": "CONVERT(nvarchar(max), {value}, 126)",
    "datetime2": "CONVERT(nvarchar(max), {value}, 126)",
    "smalldatetime": "CONVERT(nvarchar(max), {value}, 126)",
    "datetimeoffset": "CONVERT(nvarchar(max), CAST(SWITCHOFFSET({value}, '+00:00') AS datetime2{scale}), 126) + N'+00:00'",
    "timestamp": "CONVERT(nvarchar(max), CONVERT(varbinary(8), {value}), 1)",  # rowversion: 0x00000000000007D1
    "geometry": "{value}.ToString()",
    "geography": "{value}.ToString()",
    "hierarchyid": "{value}.ToString()",
}
_BINARY = {
    "hex": "LOWER(CONVERT(nvarchar(max), CONVERT(varbinary(max), {value}), 2))",
    "base64": "CASE WHEN {value} IS NOT NULL THEN (SELECT CONVERT(varbinary(max), {value}) FOR XML PATH(''), BINARY BASE64) END",
}
_NOT_SENT = "CASE WHEN {value} IS NOT NULL THEN N'' END"


class SqlServerDialect(DriverDialect):
    """SQL Server's SQL."""

    name: ClassVar[Literal["sqlserver"]] = "sqlserver"
    text_mark: ClassVar[str] = "N"

    def quote(self, identifier: str) -> str:
        """Return an identifier between brackets, because brackets have the same meaning with every setting."""
        return "[" + identifier.replace("]", "]]") + "]"

    def exact_text(self, column: ResultColumn) -> str:
        """See `SqlDialect.exact_text`."""
        value = column.expression or self.quote(column.name)
        if column.kind == "binary":
            return _BINARY.get(self.options.binary, _NOT_SENT).format(value=value)
        base = _base_type(column.type)
        text = _EXPRESSIONS.get(base, _TEXT).format(value=value, scale=column.type[len(base) :])
        return f"RTRIM({text})" if column.kind == "padded" and self.options.char_padding == "trim" else text

    def describe(self, source: str) -> str:
        """Return a statement that lists name and type of each column of ``source``, or the error if ``source`` is refused."""
        return (
            "SELECT name, system_type_name, error_message FROM sys.dm_exec_describe_first_result_set("
            f"{self.literal(f'SELECT * FROM {source}')}, NULL, 0)"
            " WHERE is_hidden = 0 OR is_hidden IS NULL ORDER BY column_ordinal"
        )


class SqlServerDatabase(DriverDatabase):
    """A SQL Server database. It needs ``ALLOW_SNAPSHOT_ISOLATION``: then a reading takes no locks on rows."""

    driver_name: ClassVar[str] = "mssql_python"
    dialect: SqlServerDialect

    def __init__(self, options: DatabaseOptions) -> None:
        super().__init__(options)
        self.dialect = SqlServerDialect(options)

    def connect(self) -> Any:
        """See `DriverDatabase.connect`."""
        address = self.options.address()
        settings = {name.lower(): value for name, value in address.query.items()}
        unknown = sorted(settings.keys() - set(_SETTINGS))
        if unknown:
            known = ", ".join(_SETTINGS)
            raise SourceBroken(
                f"The url has the settings {', '.join(unknown)}, which are not known; known are {known}."
            )
        parameters = {
            "server": f"{address.host or 'localhost'},{address.port or 1433}",
            "database": address.database,
            "uid": address.user,
            "pwd": address.password or "",
            "applicationintent": "ReadOnly",
            "timeout": self.options.connect_timeout_seconds,
            "autocommit": False,
        }
        return self.driver.connect(**parameters | settings)

    def session(self, connection: Any) -> DriverSession:
        """See `DriverDatabase.session`. The server begins the transaction at the first statement of the reading."""
        connection.timeout = max(1, round(self.options.statement_timeout_seconds))
        session = SqlServerSession(connection, self.dialect)
        lock = max(1, round(self.options.lock_timeout_seconds * 1000))
        for statement in (f"SET LOCK_TIMEOUT {lock}", ONE_STATE):
            session.execute(statement).close()
        return session

    def failure(self, error: Any) -> SourceError:
        """See `DriverDatabase.failure`."""
        where, words = self.options.address(), one_line(error.ddbc_error or error.driver_error)
        if "authorization" in str(error.driver_error).lower() or "Login failed" in words:
            return login_refused(where, words)
        if any(mark in words for mark in _NO_SNAPSHOT):
            return SourceBroken(
                f"The database {where} does not permit a reading of one state: {words}. Its owner runs ALTER DATABASE … SET"
                " ALLOW_SNAPSHOT_ISOLATION ON."
            )
        if isinstance(error, (self.driver.OperationalError, self.driver.InterfaceError)):
            return SourceUnavailable(f"The database {where} can't be reached: {words}.")
        return SourceBroken(f"The database {where} refuses the reading: {words}.")


class SqlServerSession(DriverSession):
    """A transaction of one connection."""

    dialect: SqlServerDialect

    def columns(self, source: str) -> list[ResultColumn]:
        """See `ReadSession.columns`."""
        with closing(self.execute(self.dialect.describe(source))) as cursor:
            rows = cursor.fetchall()
        refused = next((words for _, _, words in rows if words), None)
        if refused is not None:
            where = self.dialect.options.address()
            raise SourceBroken(f"The database {where} refuses the reading: {one_line(refused)}.")
        return [column_of(name or "", type_) for name, type_, _ in rows]


def column_of(name: str, type_: str | None) -> ResultColumn:
    """Return a column of a result. ``type_``: the column's ``system_type_name``."""
    known = type_ or "sql_variant"
    return ResultColumn(name=name, type=known, kind=_KINDS.get(_base_type(known), "text"))


def _base_type(type_: str) -> str:
    """Return the name of a type without length, precision and scale."""
    return type_.partition("(")[0]
