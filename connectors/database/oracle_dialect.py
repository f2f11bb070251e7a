"""The SQL of Oracle. It needs no driver, so its statements can be compiled in tests.

The number format of the session is fixed; see `SESSION`. Oracle stores an empty text as NULL.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from connectors.database.options import DatabaseOptions
from connectors.database.port import Kind, Parameter, ResultColumn, SqlDialect
from connectors.database.statement import ALIAS

SESSION = "ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,' TIME_ZONE = '+00:00'"
"""What every session begins with, so that the text of a number does not depend on the client or the server."""

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
    # TM9 has all digits, but none before the point of 0.5.
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
    "xmltype": ALIAS + ".{value}.GETCLOBVAL()",  # a method needs the name of its table
}
_BINARY = {
    "hex": "LOWER(RAWTOHEX({value}))",
    "base64": "REPLACE(UTL_RAW.CAST_TO_VARCHAR2(UTL_ENCODE.BASE64_ENCODE({value})), CHR(13) || CHR(10), '')",
}


class OracleDialect(SqlDialect):
    """Oracle's SQL. A name has the case in which it is written, so a table ``PART`` is not found as ``part``."""

    name: ClassVar[Literal["oracle"]] = "oracle"
    alias_keyword: ClassVar[str] = ""

    def __init__(self, options: DatabaseOptions) -> None:
        self._options = options

    def exact_text(self, column: ResultColumn) -> str:
        """Return the SQL expression of a column's exact text."""
        value = column.expression or self.quote(column.name)
        if column.kind == "binary":
            template = _BINARY.get(self._options.binary) if column.type == "raw" else None
            return (template or "CASE WHEN {value} IS NOT NULL THEN '?' END").format(value=value)  # bytes are not sent
        text = _EXPRESSIONS.get(column.type, "{value}").format(value=value)
        return f"RTRIM({text})" if column.kind == "padded" and self._options.char_padding == "trim" else text


def column_of(name: str, type_: str) -> ResultColumn:
    """Return a column of a result; ``type_`` is the driver's name of its type, such as ``DB_TYPE_VARCHAR``."""
    known = type_.removeprefix("DB_TYPE_").lower()
    return ResultColumn(name=name, type=known, kind=_KINDS.get(known, "text"))


def literal(value: Parameter) -> str:
    """Return a number as it is, and a text between quotes."""
    return repr(value) if isinstance(value, int | float) else "'" + value.replace("'", "''") + "'"
