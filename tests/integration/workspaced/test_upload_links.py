"""Several uploads by links to one file: which upload becomes the current version (contract C1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.support.cloud_files import FILES, CloudFiles


@pytest.fixture
def files(http: httpx.AsyncClient, workspace: dict[str, Any]) -> CloudFiles:
    return CloudFiles(http=http, workspace=workspace["id"])


@pytest.mark.both_databases
async def test_a_repeated_completion_does_not_replace_the_bytes_by_an_earlier_upload(files: CloudFiles) -> None:
    older = await files.link()
    newer = await files.link(id=older["id"])
    for link in (older, newer):
        await files.http.put(link["uploadUrl"], content=link["uploadId"].encode())
    for _ in range(2):
        done = await files.http.post(f"{FILES}/upload-complete/{older['id']}")
        assert (done.status_code, done.json()["version"]) == (200, 1)
    assert await files.content(older["id"]) == newer["uploadId"].encode()
    done = await files.http.post(f"{FILES}/upload-complete/{older['id']}", json={"uploadId": older["uploadId"]})
    assert done.json()["version"] == 2, "an upload that is named is completed"


@pytest.mark.both_databases
async def test_a_long_upload_by_an_earlier_link_is_the_last_upload_when_it_ends(files: CloudFiles) -> None:
    slow = await files.link()
    quick = await files.link(id=slow["id"])
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def parts() -> AsyncIterator[bytes]:
        has_begun.set()
        yield b"slow "
        await may_end.wait()
        yield b"bytes"

    sending = asyncio.create_task(files.http.put(slow["uploadUrl"], content=parts()))
    await has_begun.wait()
    await files.http.put(quick["uploadUrl"], content=b"quick")
    await files.http.post(f"{FILES}/upload-complete/{slow['id']}")
    assert await files.content(slow["id"]) == b"quick"
    may_end.set()
    assert (await sending).status_code == 200
    await files.http.post(f"{FILES}/upload-complete/{slow['id']}")
    assert await files.content(slow["id"]) == b"slow bytes"
