"""Versions of a file: which upload becomes the current version, and which name the version has (contract C1, C10)."""

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
    fast = await files.link(id=slow["id"])
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def parts() -> AsyncIterator[bytes]:
        has_begun.set()
        yield b"slow "
        await may_end.wait()
        yield b"bytes"

    sending = asyncio.create_task(files.http.put(slow["uploadUrl"], content=parts()))
    await has_begun.wait()
    await files.http.put(fast["uploadUrl"], content=b"fast")
    await files.http.post(f"{FILES}/upload-complete/{slow['id']}")
    assert await files.content(slow["id"]) == b"fast"
    may_end.set()
    assert (await sending).status_code == 200
    await files.http.post(f"{FILES}/upload-complete/{slow['id']}")
    assert await files.content(slow["id"]) == b"slow bytes"


@pytest.mark.both_databases
async def test_a_version_without_a_name_keeps_a_name_that_the_file_got_during_the_upload(files: CloudFiles) -> None:
    file = (await files.upload("draft.txt"))["id"]
    version = {"workspaceId": files.workspace, "id": file}

    async def parts() -> AsyncIterator[bytes]:
        yield b"new "
        renamed = await files.http.patch(f"{FILES}/{file}", json={"fileName": "approved.csv", "contentType": None})
        assert renamed.status_code == 200
        yield b"bytes"

    done = await files.http.post(FILES, params=version, content=parts(), headers={"Content-Type": "text/plain"})
    record = done.json()
    assert (done.status_code, record["version"], record["size"]) == (201, 2, 9)
    assert (record["fileName"], record["contentType"]) == ("approved.csv", "text/csv")
    typed = await files.http.post(FILES, params={**version, "contentType": "text/plain"}, content=b"")
    assert (typed.json()["fileName"], typed.json()["contentType"]) == ("approved.csv", "text/plain")


async def test_a_new_file_needs_a_name(files: CloudFiles) -> None:
    for query in ({}, {"id": "22222222-2222-4222-8222-222222222222"}):
        refused = await files.http.post(FILES, params={"workspaceId": files.workspace, **query}, content=b"x")
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/fileName")
        assert refused.json()["code"] == "required"
