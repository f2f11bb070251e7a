"""SQL that an administrator may execute to prepare a database for a source. ingestd only prints this SQL.

Names come from the configuration and are quoted. The SQL never contains the password of the URL.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from connectors.database.address import parse_table
from connectors.database.options import LONGEST_NAME, DatabaseOptions
from ingestd.sdk import SourceBroken

_DEFAULT_USER = "ingestd"
_QUERY = (
    "The source reads a query. Repeat the statements that name a table for each table of the query, because the"
    " tables of a query are not known."
)


class SetupSection(NamedTuple):
    """Statements with one purpose. ``removal``: statements that undo them. ``title``: a comment, without configured names."""

    title: str
    statements: tuple[str, ...] = ()
    removal: tuple[str, ...] = ()


def setup_sql(options: DatabaseOptions) -> str:
    """Return SQL statements with comments, as input for the command-line client of the database.

    Raises:
        SourceBroken: a name holds a control character.
    """
    sections: Iterable[SetupSection] = ()
    match options.address().family:
        case "postgresql":
            sections = _postgresql(options)
        case "mariadb":
            sections = _mariadb(options)
        case "sqlite":
            title = "SQLite needs no setup: ingestd needs the right to read the file and its folder."
            sections = [SetupSection(title=title)]
    return "\n\n".join("\n".join(_lines(section)) for section in sections)


def quoted(name: str, mark: str = '"') -> str:
    """Return a name as a quoted SQL identifier. ``mark``: the quotation mark of the database.

    Raises:
        SourceBroken: the name holds a control character.
    """
    if any(unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in name):
        raise SourceBroken(f"The name {name!r} holds a control character. Write the SQL for it by hand.")
    return mark + name.replace(mark, mark * 2) + mark


def _lines(section: SetupSection) -> Iterator[str]:
    yield from (f"-- {line}" for line in section.title.splitlines())
    yield from (f"{statement};" for statement in section.statements)
    if section.removal:
        yield "-- To remove it:"
        yield from (f"-- {statement};" for statement in section.removal)


def _postgresql(options: DatabaseOptions) -> Iterator[SetupSection]:
    address = options.address()
    user = quoted(address.user or _DEFAULT_USER)
    table, schema, assumed = "", "", ""
    if options.table is not None:
        parts = parse_table(options.table)
        if len(parts) == 1:
            parts, assumed = ("public", *parts), "\nThe configuration names no schema: public is assumed."
        schema = quoted(parts[-2])
        table = f"{schema}.{quoted(parts[-1])}"
    database = quoted(address.database or address.user or _DEFAULT_USER)
    rights = [f"CONNECT ON DATABASE {database}"]
    rights += [f"USAGE ON SCHEMA {schema}", f"SELECT ON TABLE {table}"] if table else []
    yield SetupSection(
        title="A role that only reads. Omit CREATE ROLE if it exists. Set its password with psql's \\password."
        + (assumed if table else f"\n{_QUERY}"),
        statements=(f"CREATE ROLE {user} LOGIN", *(f"GRANT {right} TO {user}" for right in rights)),
        removal=(*(f"REVOKE {right} FROM {user}" for right in rights), f"DROP ROLE {user}"),
    )
    if options.notify is not None and table:
        yield _notification(options.notify, schema, table)
    if options.slot is not None:
        yield _slot(options.slot, quoted(str(options.publication)), user, table)
    if options.cursor is not None and table:
        index = quoted(f"ingestd_cursor_{_digest(table)}")
        yield SetupSection(
            title="An index for cursor. If the source reads a view, create it on the table of the view.",
            statements=(f"CREATE INDEX CONCURRENTLY {index} ON {table} ({quoted(options.cursor)})",),
            removal=(f"DROP INDEX {schema}.{index}",),
        )


def _notification(channel: str, schema: str, table: str) -> SetupSection:
    name = f"ingestd_notify_{channel}"
    if len(name.encode()) > LONGEST_NAME:
        name = f"ingestd_notify_{_digest(channel)}"
    trigger, function = quoted(name), f"{schema}.{quoted(name)}"
    body = f"BEGIN NOTIFY {quoted(channel)}; RETURN NULL; END"
    events, tag = "INSERT OR UPDATE OR DELETE OR TRUNCATE", "$ingestd$"
    while tag in body:
        tag = f"{tag[:-1]}_$"
    return SetupSection(
        title=(
            "A trigger that notifies, once for each transaction that writes. A view has none: create it on its tables."
            "\nA partition that is written by its own name needs the trigger, too."
        ),
        statements=(
            f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS {tag}{body}{tag}",
            f"CREATE TRIGGER {trigger} AFTER {events} ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {function}()",
        ),
        removal=(f"DROP TRIGGER {trigger} ON {table}", f"DROP FUNCTION {function}()"),
    )


def _slot(slot: str, publication: str, user: str, table: str) -> SetupSection:
    return SetupSection(
        title=(
            "A slot that holds the keys of changes until they are read. The server needs wal_level = logical."
            "\nA slot that is not read fills the disk. Limit it: ALTER SYSTEM SET max_slot_wal_keep_size = '4GB'"
            "\nUPDATE and DELETE of a published table fail without a primary key or another replica identity."
        ),
        statements=(
            f"ALTER ROLE {user} REPLICATION",
            f"CREATE PUBLICATION {publication} FOR TABLE {table}",
            f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')",
        ),
        removal=(
            f"SELECT pg_drop_replication_slot('{slot}')",
            f"DROP PUBLICATION {publication}",
            f"ALTER ROLE {user} NOREPLICATION",
        ),
    )


def _mariadb(options: DatabaseOptions) -> Iterator[SetupSection]:
    address = options.address()
    user = f"{quoted(address.user or _DEFAULT_USER, '`')}@`%`"
    table = ""
    if options.table is not None:
        parts = parse_table(options.table)
        table = ".".join(quoted(part, "`") for part in (address.database, *parts)[-2:])
    grants = [f"GRANT SELECT ON {table} TO {user}"] if table else []
    yield SetupSection(
        title="An account that only reads, locked until it has a password. Omit CREATE USER if it exists; narrow % to the host of"
        " ingestd.\nSet the password: ALTER USER … IDENTIFIED BY '…' ACCOUNT UNLOCK" + ("" if table else f"\n{_QUERY}"),
        statements=(f"CREATE USER {user} ACCOUNT LOCK", *grants),
        removal=(f"DROP USER {user}",),
    )
    if options.incremental and options.cursor is not None:
        yield SetupSection(
            title=(
                "The right to list the running transactions. Without this right, a row that is committed late may"
                " be missed until the sweep."
            ),
            statements=(f"GRANT PROCESS ON *.* TO {user}",),
            removal=(f"REVOKE PROCESS ON *.* FROM {user}",),
        )
    if options.cursor is not None and table:
        index = quoted("ingestd_cursor", "`")
        yield SetupSection(
            title="An index for cursor. If the source reads a view, create it on the table of the view.",
            statements=(f"CREATE INDEX {index} ON {table} ({quoted(options.cursor, '`')})",),
            removal=(f"DROP INDEX {index} ON {table}",),
        )


def _digest(name: str) -> str:
    """Return a short hash of a long name."""
    return blake2b(name.encode(), digest_size=8).hexdigest()
