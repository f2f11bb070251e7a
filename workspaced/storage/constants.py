"""Settings that the first start decides for the life of the data, since records show them (contract S4)."""

from __future__ import annotations

from ingestd.process.statements import load_statements
from workspaced.storage.port import StorageUnusable, Transaction

_SQL = load_statements("workspaced.storage", "constants.sql")


def resolve_constant(tx: Transaction, name: str, wanted: str, *, default: str) -> str:
    """The value that holds; the first caller decides it. ``wanted`` empty: whatever holds, or else the default.

    Raises:
        StorageUnusable: another value holds than the wanted one.
    """
    tx.run(_SQL["choose"], {"name": name, "value": wanted or default})
    row = tx.one(_SQL["read"], {"name": name})
    if row is None:
        raise LookupError(f"the setting {name} is not there right after it was fixed")
    value = str(row[0])
    if wanted and wanted != value:
        raise StorageUnusable(
            f"WORKSPACED_{name.upper()} is '{wanted}', but this data was begun with '{value}', which ids that are in use "
            "elsewhere show. Leave the setting out, or begin with another data folder."
        )
    return value


def rewrite_constant(tx: Transaction, name: str, value: str) -> None:
    """Write the same value in another form."""
    tx.run(_SQL["rewrite"], {"name": name, "value": value})
