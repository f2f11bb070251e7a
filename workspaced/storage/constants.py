"""Settings that the first start fixes for the life of the data, because records contain them (contract S4)."""

from __future__ import annotations

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.port import ReadTransaction, StorageUnusable, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.storage", "constants.sql")


def resolve_constant(tx: Transaction, name: str, wanted: str, *, default: str) -> str:
    """Return the fixed value of a setting. The first call fixes ``wanted``, or ``default`` if ``wanted`` is empty.

    Raises:
        StorageUnusable: ``wanted`` differs from the fixed value.
    """
    tx.run(_SQL["choose"], {"name": name, "value": wanted or default})
    value = str(tx.existing(_SQL["read"], {"name": name})[0])
    if wanted and wanted != value:
        raise StorageUnusable(
            f"WORKSPACED_{name.upper()} is '{wanted}', but this data was created with '{value}', which is part of ids that other "
            "programs use. Remove the setting, or use another data folder."
        )
    return value


def find_constant(reader: ReadTransaction, name: str) -> str | None:
    """Return the value of a setting (None: not fixed yet). Until a writing transaction ends, the value can't change."""
    row = reader.one(_SQL["read"], {"name": name})
    return None if row is None else str(row[0])


def replace_constant(tx: Transaction, name: str, before: str | None, value: str) -> None:
    """Replace the value ``before`` of a setting; ``before`` is None if the setting is not fixed yet.

    Raises:
        UnavailableProblem: another process replaced the value first.
    """
    values = {"name": name, "value": value, "before": before}
    if not tx.run(_SQL["choose" if before is None else "replace"], values):
        raise UnavailableProblem("starting", f"Another process has just set {name}.")
