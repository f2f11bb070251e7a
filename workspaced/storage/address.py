"""The address of the service's database: a SQLite file, or a PostgreSQL database by URL.

This module performs no I/O and imports no driver.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from ingestd.process.postgres_address import PostgresAddress, postgres_address

Address: TypeAlias = Path | PostgresAddress


def sqlite_address(data: Path) -> Path:
    """Return the SQLite file of a data folder."""
    return data / "workspaced.db"


def address_of(data: Path, url: str) -> Address:
    """Return the address of the database; without a URL, the SQLite file of the data folder.

    Raises:
        ValueError: the URL does not name a PostgreSQL database.
    """
    return postgres_address(url) if url else sqlite_address(data)
