"""The choice of the binary log, or of the method without it, with the reason."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from connectors.database.changes.binlog import BinlogChanges, BinlogSettings
from connectors.database.changes.binlog_events import KeyColumn, LoggedTable
from connectors.database.changes.method import ChangeMethod, ChangeSource, Guarantee
from connectors.database.changes.selection import choose_method
from connectors.database.port import ReadSession, ResultColumn, SqlDialect
from connectors.database.statement import parse_table

_SERVER = """
SELECT JSON_OBJECT('version', VERSION(), 'case', @@lower_case_table_names, 'schema', DATABASE(), 'log', @@log_bin + 0,
  'format', @@global.binlog_format, 'updates', @@log_slave_updates + 0, 'replica', @@global.gtid_slave_pos,
  'server', CONCAT_WS(' ', @@server_id, @@hostname, @@datadir),
  'rights', (SELECT GROUP_CONCAT(privilege_type) FROM information_schema.user_privileges
    WHERE grantee = CONCAT('''', SUBSTRING_INDEX(CURRENT_USER(), '@', 1), '''@''',
      SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')))
"""
_TABLE = """
SELECT JSON_OBJECT(
  'kind', (SELECT CONCAT_WS(' ', table_type, engine) FROM information_schema.tables WHERE {where}),
  'cascade', (SELECT COUNT(*) FROM information_schema.referential_constraints WHERE constraint_schema = {schema}
    AND table_name = {name} AND (delete_rule NOT IN ('RESTRICT', 'NO ACTION') OR update_rule NOT IN ('RESTRICT', 'NO ACTION'))),
  'columns', (SELECT JSON_ARRAYAGG(JSON_ARRAY(column_name, column_type, data_type, character_set_name, collation_name)
    ORDER BY ordinal_position) FROM information_schema.columns WHERE {where}))
"""
_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_TEXTS = frozenset({"char", "varchar"})
_CHARACTER_SETS = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})


def choose_method_with_binlog(
    session: ReadSession,
    dialect: SqlDialect,
    source: ChangeSource,
    columns: Sequence[ResultColumn],
    *,
    settings: BinlogSettings,
    table: str,
) -> ChangeMethod:
    """Return the method of the binary log, or the one without it, with a sentence on why the log can't be used.

    ``table``: the table as it is configured.

    Raises:
        SourceBroken: there is no method without the log.
    """
    without = choose_method(session, dialect, source, columns)
    if "mariadb" not in str(session.scalar("SELECT VERSION()")).lower():
        return _without(without, "Only MariaDB's log is read, not that of MySQL")
    server = json.loads(session.scalar(_SERVER) or "{}")
    parts = (server["schema"] or "", *parse_table(table))[-2:]
    schema, name = (part.lower() if server["case"] else part for part in parts)
    facts = _facts(session, schema, name)
    problem = _server_problem(server) or _table_problem(facts, settings.key)
    if problem:
        return _without(without, problem)
    names = [column[0] for column in facts["columns"]]
    places = [names.index(column) for column in settings.key]
    key = tuple(KeyColumn(place, "unsigned" in facts["columns"][place][1]) for place in places)
    guarantee = Guarantee(
        method="binlog",
        sentence=(
            "Each reading finds every change that the server logs, also removed rows and changed keys, because the binary log"
            " has the keys of all committed changes. A removed row is a whole reading. The sweep remains."
        ),
    )
    logged = LoggedTable(schema=schema, name=name, columns=len(names), key=key)
    definition = json.dumps([server["server"], schema, name, facts["columns"]])
    return BinlogChanges(source, dialect, guarantee, settings, table=logged, definition=definition)


def _without(method: ChangeMethod, problem: str) -> ChangeMethod:
    method.guarantee = replace(method.guarantee, improvement=f"The binary log is not used. {problem}.")
    return method


def _facts(session: ReadSession, schema: str, name: str) -> dict[str, Any]:
    literals = {"schema": _literal(schema), "name": _literal(name)}
    where = "BINARY table_schema = {schema} AND BINARY table_name = {name}".format(**literals)
    facts: dict[str, Any] = json.loads(session.scalar(_TABLE.format(where=where, **literals)) or "{}")
    return facts


def _literal(text: str) -> str:
    """Return a text in hexadecimal, so that no SQL mode matters."""
    return f"_utf8mb4 0x{text.encode().hex()}" if text else "''"


def _server_problem(facts: dict[str, Any]) -> str:
    """Return why the log of a server can't be used, and the remedy; empty if it can."""
    rights = str(facts["rights"] or "")
    checks = (
        (facts["log"], "The server has none: set log_bin and server_id in its configuration"),
        (facts["format"] == "ROW", f"binlog_format is {facts['format']}: set it to ROW"),
        (
            "REPLICATION SLAVE" in rights,
            "The user lacks REPLICATION SLAVE, which reading the log needs; 'ingestd database sql' prints the grant",
        ),
        (
            facts["updates"] or not facts["replica"],
            "The server is a replica that does not log what it receives: set log_slave_updates, or read from the primary",
        ),
        (facts["case"] != 2, "lower_case_table_names is 2, with which the log's names are not known"),
    )
    return next((sentence for is_met, sentence in checks if not is_met), "")


def _table_problem(facts: dict[str, Any], key: Sequence[str]) -> str:
    """Return why the log of a table can't be used; empty if it can."""
    columns = {column[0]: column for column in facts["columns"] or ()}
    if facts["kind"] != "BASE TABLE InnoDB":
        return "It needs a table with the engine InnoDB, and without SYSTEM VERSIONING"
    if facts["cascade"]:
        return "A foreign key of the table changes rows by CASCADE or SET NULL, which the server does not log"
    for name in key:
        if name not in columns:
            return f"There is no column {name} (key)"
        _, full, kind, charset, _ = columns[name]
        is_text = kind in _TEXTS and charset in _CHARACTER_SETS
        if not (kind in _INTEGERS or kind == "date" or is_text):
            return f"Column {name} (key) has the type {full}: it needs an integer, a date, or a text in UTF-8"
    return ""
