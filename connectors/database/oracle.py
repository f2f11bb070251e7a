"""Oracle, with the thin mode of its driver, which needs no client library.

Oracle stores an empty text as NULL. Tests check the SQL of this module with a parser; no test executes it on a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any, ClassVar, Literal

from connectors.database.driver import DriverDatabase, DriverDialect, DriverSession
from connectors.database.failure import login_refused, one_line
from connectors.database.limits import Deadline
from connectors.database.options import DatabaseOptions
from connectors.database.port import ALIAS, Kind, ResultColumn
from ingestd.sdk import SourceBroken, SourceError, SourceUnavailable

SESSION = "ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,' TIME_ZONE = '+00:00'"
"""The first statement of every session: the texts of numbers must not depend on settings of client and server."""

_LOGIN = frozenset({1017, 28000, 28001, 1045, 1005})  # denied, locked, expired
_AWAY = frozenset({1033, 1034, 1089, 3113, 3114, 1555, 8177, 12514, 12541, 12170, 2391, 18})
"""The server starts or shuts down, a lost connection, a snapshot that is too old, no listener, too many sessions."""
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("raw", "long_raw", "blob", "bfile"), "binary"),
    **dict.fromkeys(("char", "nchar"), "padded"),
    **dict.fromkeys(("binary_float", "binary_double"), "number"),
}
_DAY_TIME = "'YYYY-MM-DD\"T\"HH24:MI:SS'"
_FRACTIONS = "'YYYY-MM-DD\"T\"HH24:MI:SS.FF9'"
_WITHOUT_ZEROS = "RTRIM(RTRIM(TO_CHAR({value}, " + _FRACTIONS + "), '0'), '.')"
_UTC = "RTRIM(RTRIM(TO_CHAR(SYS_EXTRACT_UTC({value}), " + _FRACTIONS + "), '0'), '.') || '+00:00'"
_EXPRESSIONS = {
    # TM9 writes all digits. But it writes 0.5 as .5, so the zero is added.
    "number": "REGEXP_REPLACE(TO_CHAR({value}, 'TM9'), '^(-?)[.]', '\\10.')",
    "binary_float": "TO_CHAR({value})",
    "binary_double": "TO_CHAR({value})",
    "date": "TO_CHAR({value}, " + _DAY_TIME + ")",
    "timestamp": _WITHOUT_ZEROS,
    "timestamp_tz": _UTC,
    "timestamp_ltz": _UTC,
    "interval_ds": "TO_CHAR({value})",
    "interval_ym": "TO_CHAR({value})",
    "boolean": "CASE {value} WHEN TRUE THEN 'true' WHEN FALSE THEN 'false' END",
    "rowid": "ROWIDTOCHAR({value})",
    "json": "JSON_SERIALIZE({value} RETURNING CLOB)",
    "xmltype": ALIAS + ".{value}.GETCLOBVAL()",  # Oracle permits a method call only after the table's alias
}
_BINARY = {
    "hex": "LOWER(RAWTOHEX({value}))",
    "base64": "REPLACE(UTL_RAW.CAST_TO_VARCHAR2(UTL_ENCODE.BASE64_ENCODE({value})), CHR(13) || CHR(10), '')",
}


class OracleDialect(DriverDialect):
    """Oracle's SQL. Names are quoted, so upper and lower case matter: a table ``PART`` is not found as ``part``."""

    name: ClassVar[Literal["oracle"]] = "oracle"
    alias_keyword: ClassVar[str] = ""

    def exact_text(self, column: ResultColumn) -> str:
        """See `SqlDialect.exact_text`."""
        value = column.expression or self.quote(column.name)
        if column.kind == "binary":
            template = _BINARY.get(self.options.binary) if column.type == "raw" else None
            return (template or "CASE WHEN {value} IS NOT NULL THEN '?' END").format(value=value)  # bytes are not sent
        text = _EXPRESSIONS.get(column.type, "{value}").format(value=value)
        return f"RTRIM({text})" if column.kind == "padded" and self.options.char_padding == "trim" else text


class OracleDatabase(DriverDatabase):
    """An Oracle server. The database name in the URL is the name of its service."""

    driver_name: ClassVar[str] = "oracledb"

    def __init__(self, options: DatabaseOptions) -> None:
        super().__init__(options)
        self.dialect = OracleDialect(options)

    def connect(self) -> Any:
        """See `DriverDatabase.connect`."""
        address = self.options.address()
        if address.query:
            raise SourceBroken(f"The url has the settings {', '.join(sorted(address.query))}; Oracle has none here.")
        return self.driver.connect(
            user=address.user,
            password=address.password,
            host=address.host or "localhost",
            port=int(address.port or 1521),
            service_name=address.database,
            tcp_connect_timeout=self.options.connect_timeout_seconds,
        )

    def session(self, connection: Any) -> DriverSession:
        """See `DriverDatabase.session`. `SESSION` fixes the text of numbers."""
        connection.call_timeout = round(self.options.statement_timeout_seconds * 1000)
        session = OracleSession(connection, self.dialect)
        for statement in (SESSION, "SET TRANSACTION READ ONLY"):
            session.execute(statement).close()
        return session

    def failure(self, error: Any) -> SourceError:
        """See `DriverDatabase.failure`."""
        where, cause = self.options.address(), error.args[0] if error.args else error
        code, words = getattr(cause, "code", 0), one_line(getattr(cause, "message", cause))
        if code in _LOGIN:
            return login_refused(where, words)
        if getattr(cause, "full_code", "") == "DPY-4024":  # call_timeout
            return Deadline(self.options).silent()
        if code in _AWAY or not code or getattr(cause, "isrecoverable", False):
            return SourceUnavailable(f"The database {where} can't be reached: {words}.")
        return SourceBroken(f"The database {where} refuses the reading: {words}.")


class OracleSession(DriverSession):
    """A transaction of one connection."""

    execute_options: ClassVar[Mapping[str, Any]] = {"fetch_lobs": False}  # fetch the text of a CLOB, not a handle

    def columns(self, source: str) -> list[ResultColumn]:
        """See `ReadSession.columns`."""
        with closing(self.execute(f"SELECT * FROM {source} WHERE 1 = 0")) as cursor:
            columns = [column_of(name, type_.name) for name, type_, *_ in cursor.description]
        binary = self.dialect.options.binary
        large = [column.name for column in columns if column.kind == "binary" and column.type != "raw"]
        if large and binary in {"hex", "base64"}:
            raise SourceBroken(
                f"Column {large[0]} is a large object, which can't be written as text (binary: {binary}). Leave it"
                " out in a query."
            )
        return columns


def column_of(name: str, type_: str) -> ResultColumn:
    """Return a column of a result. ``type_``: the driver's name for the column's type, such as ``DB_TYPE_VARCHAR``."""
    known = type_.removeprefix("DB_TYPE_").lower()
    return ResultColumn(name=name, type=known, kind=_KINDS.get(known, "text"))
