"""A file that a thread opens for a cancelled task is released."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from pathlib import Path

import pytest

from workspaced.storage.blobs.file_threads import acquired, open_file


async def cancel_while_it_opens(*, fails: bool) -> list[str]:
    released: list[str] = []
    goes_on = threading.Event()

    def open_slowly() -> str:
        goes_on.wait(10)
        if fails:
            raise FileNotFoundError
        return "file"

    opening = asyncio.get_running_loop().run_in_executor(None, open_slowly)
    task = asyncio.create_task(acquired(opening, released.append))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done(), "it waits for the thread"
    goes_on.set()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
    return released


async def test_a_file_that_is_opened_after_the_cancellation_is_released() -> None:
    assert await cancel_while_it_opens(fails=False) == ["file"]


async def test_a_file_that_can_not_be_opened_is_not_released() -> None:
    assert await cancel_while_it_opens(fails=True) == []


async def test_an_opened_file_is_returned() -> None:
    released: list[str] = []
    opening = asyncio.get_running_loop().run_in_executor(None, lambda: "file")
    assert await acquired(opening, released.append) == "file"
    assert released == []


async def test_a_file_that_is_opened_for_a_cancelled_task_is_closed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "file")
    opening = asyncio.create_task(open_file(tmp_path / "file", "rb"))
    await asyncio.sleep(0)
    opening.cancel()
    writer = await asyncio.to_thread((tmp_path / "file").open, "wb", buffering=0)  # waits for the reader
    with writer:
        with pytest.raises(asyncio.CancelledError):
            await opening
        with pytest.raises(BrokenPipeError):
            writer.write(b"1")
