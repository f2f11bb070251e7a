"""The store of one process of the service, without the other parts of the process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeVar

from workspaced.storage.address import Address
from workspaced.storage.factory import create_store
from workspaced.storage.store import Store, StoreOptions

StoreT = TypeVar("StoreT", bound=Store)

OPTIONS: StoreOptions = {"readers": 2, "streams": 2, "busy_seconds": 2}


@asynccontextmanager
async def started(store: StoreT) -> AsyncIterator[StoreT]:
    """Start a store, and stop it after the block."""
    await store.start()
    try:
        yield store
    finally:
        await store.stop()


def running_store(address: Address, tmp_path: Path) -> AbstractAsyncContextManager[Store]:
    """Run a store of a database until the block ends. Several stores share the folder below ``tmp_path``."""
    return started(create_store(address, folder=tmp_path / "data", **OPTIONS))
