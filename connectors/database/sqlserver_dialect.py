"""The SQL of SQL Server. It needs no driver, so its statements can be compiled in tests."""

from __future__ import annotations

from typing import ClassVar, Literal

from connectors.database.options import DatabaseOptions
from connectors.database.port import Kind, Parameter, ResultColumn, SqlDialect

ONE_STATE = "SET TRANSACTION ISOLATION LEVEL SNAPSHOT"
"""A transaction that sees one state of the database and neither waits for writers nor delays them."""

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("binary", "varbinary", "image"), "binary"),
    **dict.fromkeys(("char", "nchar"), "padded"),
}
_TEXT = "CONVERT(nvarchar(max), {value})"
_EXPRESSIONS = {
    "bit": "CASE {value} WHEN 1 THEN N'true' WHEN 0 THEN N'false' END",
    "float": "CONVERT(nvarchar(max), {value}, 3)",  # 17 digits, which read back as the same number
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


class SqlServerDialect(SqlDialect):
    """SQL Server's SQL."""

    name: ClassVar[Literal["sqlserver"]] = "sqlserver"

    def __init__(self, options: DatabaseOptions) -> None:
        self._options = options

    def quote(self, identifier: str) -> str:
        """Return an identifier between brackets, which no setting changes."""
        return "[" + identifier.replace("]", "]]") + "]"

    def exact_text(self, column: ResultColumn) -> str:
        """Return the SQL expression of a column's exact text."""
        value = column.expression or self.quote(column.name)
        if column.kind == "binary":
            template = _BINARY.get(
                self._options.binary, "CASE WHEN {value} IS NOT NULL THEN N'' END"
            )  # bytes are not sent
            return template.format(value=value)
        base, scale = base_type(column.type), column.type[len(base_type(column.type)) :]
        text = _EXPRESSIONS.get(base, _TEXT).format(value=value, scale=scale)
        return f"RTRIM({text})" if column.kind == "padded" and self._options.char_padding == "trim" else text


def describe(source: str) -> str:
    """Return the statement that lists the columns of ``source``, what follows FROM: name, type, and why it is refused."""
    return (
        "SELECT name, system_type_name, error_message FROM sys.dm_exec_describe_first_result_set("
        + literal(f"SELECT * FROM {source}")
        + ", NULL, 0) WHERE is_hidden = 0 OR is_hidden IS NULL ORDER BY column_ordinal"
    )


def base_type(type_: str) -> str:
    """Return the name of a type without its length, precision or scale."""
    return type_.partition("(")[0]


def column_of(name: str, type_: str | None) -> ResultColumn:
    """Return a column of a result; ``type_`` is its ``system_type_name``."""
    known = type_ or "sql_variant"
    return ResultColumn(name=name, type=known, kind=_KINDS.get(base_type(known), "text"))


def literal(value: Parameter) -> str:
    """Return a number as it is, and a text as a Unicode literal."""
    return repr(value) if isinstance(value, int | float) else "N'" + value.replace("'", "''") + "'"
