"""Create the store for an address. Only this module knows both databases. It imports PostgreSQL's driver on demand."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, Unpack

from ingestd.process.postgres_address import PostgresAddress
from workspaced.storage import sqlite_store
from workspaced.storage.address import Address
from workspaced.storage.port import StorageUnusable, Transaction
from workspaced.storage.store import Store, StoreOptions

T = TypeVar("T")


def create_store(address: Address, *, folder: Path, **options: Unpack[StoreOptions]) -> Store:
    """Return the store of one process, not yet started. ``folder`` is the data folder.

    Raises:
        StorageUnusable: PostgreSQL's driver is not installed.
    """
    if isinstance(address, PostgresAddress):
        store: Store = _postgres_store().PostgresStore(address, folder=folder, **options)
        return store
    return sqlite_store.SqliteStore(address, **options)


def transact(address: Address, work: Callable[[Transaction], T]) -> T:
    """Run one transaction, for commands and tests, which have no running store.

    Raises:
        StorageUnusable: the database can't be used at all.
        UnavailableProblem: the database is busy, can't be reached, or has a schema that this program can't use.
    """
    if isinstance(address, PostgresAddress):
        result: T = _postgres_store().transact(address, work)
        return result
    return sqlite_store.transact(address, work)


def migrate(address: Address, *, on_wait: Callable[[str], None] = lambda _sentence: None) -> tuple[int, int]:
    """Migrate the schema to the newest step; return the number of the last step before and after.

    ``on_wait`` gets a sentence if a step waits for other sessions of PostgreSQL.

    Raises:
        StorageUnusable: the database can't be migrated.
        UnavailableProblem: the database can't be reached.
    """
    if isinstance(address, PostgresAddress):
        steps: tuple[int, int] = _postgres_store().migrate(address, on_wait=on_wait)
        return steps
    return sqlite_store.migrate(address)


def _postgres_store() -> Any:
    """Import the PostgreSQL store on demand, because its driver is an optional dependency."""
    try:
        import_module("psycopg")
    except ImportError as error:
        raise StorageUnusable(
            "PostgreSQL needs a driver that is not installed. Install it with: pip install 'ingestd[postgres]'"
        ) from error
    return import_module("workspaced.storage.postgres_store")
