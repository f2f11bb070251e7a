"""Find out which schema a database has, and whether this program can use the schema.

The database itself says which programs can use it, because an older program does not know the newer steps.
"""

from __future__ import annotations

from typing import NamedTuple

from workspaced.core.clock import now_ms
from workspaced.core.problems import UnavailableProblem
from workspaced.storage import migrations
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.storage", "schema.sql")


class Schema(NamedTuple):
    """The last migration step of a database (0: the database is empty), and the oldest program that can use the database."""

    number: int = 0
    oldest_program: int = 0


def reached(reader: ReadTransaction) -> Schema:
    """Return the schema of a database."""
    if reader.existing(_SQL["has_steps"]) == (0,):
        return Schema()
    return Schema(*(reader.one(_SQL["last_step"]) or ()))


def record(tx: Transaction, step: migrations.MigrationStep) -> None:
    """Record that a step was done, in the transaction of the step."""
    values = {"number": step.number, "oldest_program": step.oldest_program, "at": now_ms()}
    tx.run(_SQL["add_step"], values)


def known() -> str:
    """Return a sentence that names the schemas that this program can use."""
    return f"This program can use schemas {migrations.oldest()} to {migrations.head()}, and newer ones that permit it."


def too_new(name: str, schema: Schema) -> str:
    """Return why this program is too old for the schema of the database ``name``; empty if it is not too old."""
    if schema.oldest_program <= migrations.head():
        return ""
    return (
        f"{name} was written by a newer workspaced: it has schema {schema.number}, for programs that know schema "
        f"{schema.oldest_program}. {known()} Start the newer version again."
    )


def require_usable(reader: ReadTransaction, name: str) -> None:
    """Check that this program can use the database ``name``.

    Raises:
        UnavailableProblem: the schema is too old or too new; the message says what to do.
    """
    schema = reached(reader)
    if sentence := too_new(name, schema):
        raise UnavailableProblem("schema_ahead", sentence, retry_seconds=5)
    if schema.number < migrations.oldest():
        raise UnavailableProblem(
            "schema_behind",
            f"{name} has schema {schema.number}, which is too old. {known()} "
            "Run `workspaced migrate` with the same database.",
            retry_seconds=5,
        )
