"""Which store serves an address: the only place that knows both databases. PostgreSQL's driver is imported when it is wanted."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from workspaced.storage import sqlite_store
from workspaced.storage.address import Address, PostgresAddress
from workspaced.storage.group_commit import GROUP_CALLERS
from workspaced.storage.port import CommitObserver, StorageUnusable, StoreOfProcess, Transaction

T = TypeVar("T")


def create_store(
    address: Address,
    *,
    folder: Path,
    readers: int,
    streams: int,
    busy_seconds: float,
    group_callers: int = GROUP_CALLERS,
    observer: CommitObserver = lambda _callers, _seconds: None,
) -> StoreOfProcess:
    """The store of one process, not yet started. ``folder`` is the data folder; ``group_callers`` share a commit at the most.

    Raises:
        StorageUnusable: PostgreSQL's driver is not installed.
    """
    if isinstance(address, PostgresAddress):
        _require_driver()
        from workspaced.storage.postgres_store import PostgresStore  # noqa: PLC0415

        return PostgresStore(
            address,
            folder=folder,
            readers=readers,
            streams=streams,
            lock_seconds=busy_seconds,
            group_callers=group_callers,
            observer=observer,
        )
    return sqlite_store.SqliteStore(
        address,
        readers=readers,
        streams=streams,
        busy_seconds=busy_seconds,
        group_callers=group_callers,
        observer=observer,
    )


def transact(address: Address, work: Callable[[Transaction], T]) -> T:
    """One transaction of somebody who is no server: a command, a test.

    Raises:
        StorageUnusable: the database can't be used at all.
        Unavailable: it is busy, can't be reached, or has another schema than this program.
    """
    if isinstance(address, PostgresAddress):
        _require_driver()
        from workspaced.storage import postgres_store  # noqa: PLC0415

        return postgres_store.transact(address, work)
    return sqlite_store.transact(address, work)


def migrate(address: Address) -> tuple[int, int]:
    """Bring the schema to the newest; from which step to which.

    Raises:
        StorageUnusable: it can't be done.
        Unavailable: the database can't be reached.
    """
    if isinstance(address, PostgresAddress):
        _require_driver()
        from workspaced.storage import postgres_schema  # noqa: PLC0415

        return postgres_schema.migrate(address)
    return sqlite_store.migrate(address)


def _require_driver() -> None:
    try:
        import_module("psycopg")
    except ImportError as error:
        raise StorageUnusable(
            "PostgreSQL needs a driver that is not installed. Install it with: pip install 'ingestd[postgres]'"
        ) from error
