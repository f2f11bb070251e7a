"""A client of cloud storage that uploads files and polls for conversions."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from typing import Any

import httpx

FILES = "/v1/cloud-storage"
DEADLINE_SECONDS = 60.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CloudFiles:
    """The files of one workspace, used through ``http``."""

    http: httpx.AsyncClient
    workspace: str

    async def upload(self, name: str = "notes.bin", content: bytes = b"bytes", **query: str) -> dict[str, Any]:
        """Upload a file in one request."""
        params = {"workspaceId": self.workspace, "fileName": name, **query}
        response = await self.http.post(FILES, params=params, content=content)
        assert response.status_code == 201, response.text
        record: dict[str, Any] = response.json()
        return record

    async def link(self, name: str = "notes.bin", **members: Any) -> dict[str, Any]:
        """Request an upload link; return its record."""
        body = {"workspaceId": self.workspace, "fileName": name, **members}
        response = await self.http.post(f"{FILES}/upload-link", json=body)
        assert response.status_code == 201, response.text
        record: dict[str, Any] = response.json()
        return record

    async def record(self, file: str) -> dict[str, Any]:
        response = await self.http.get(f"{FILES}/{file}")
        assert response.status_code == 200, response.text
        record: dict[str, Any] = response.json()
        return record

    async def content(self, file: str, **query: str) -> bytes:
        response = await self.http.get(f"{FILES}/download/{file}", params=query)
        assert response.status_code == 200, response.text
        return response.content

    async def conversion(self, file: str, *states: str, attempt: int = 0) -> dict[str, Any]:
        """Wait until the conversion has one of ``states`` (default: has ended) at ``attempt`` or later; return it."""
        wanted: Sequence[str] = states or ("succeeded", "failed")
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                found: dict[str, Any] = (await self.record(file))["conversion"]
                if found["state"] in wanted and found["attempt"] >= attempt:
                    return found
                await asyncio.sleep(0.01)  # The service offers clients no notification of this.
