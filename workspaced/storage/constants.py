"""Settings that the first start fixes for the life of the data, because records contain them (contract S4)."""

from __future__ import annotations

from workspaced.storage.port import StorageUnusable, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.storage", "constants.sql")


def resolve_constant(tx: Transaction, name: str, wanted: str, *, default: str) -> str:
    """Return the value that applies; the first caller fixes it. ``wanted`` empty: the fixed value, or else the default.

    Raises:
        StorageUnusable: the fixed value differs from the wanted one.
    """
    tx.run(_SQL["choose"], {"name": name, "value": wanted or default})
    value = str(tx.existing(_SQL["read"], {"name": name})[0])
    if wanted and wanted != value:
        raise StorageUnusable(
            f"WORKSPACED_{name.upper()} is '{wanted}', but this data was created with '{value}', which is part of ids that other "
            "programs use. Remove the setting, or use another data folder."
        )
    return value


def rewrite_constant(tx: Transaction, name: str, value: str) -> None:
    """Store the same value, encrypted or decrypted."""
    tx.run(_SQL["rewrite"], {"name": name, "value": value})
