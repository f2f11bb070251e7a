"""A workspace with one resource of each kind, created over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

RECEIVER = "https://receiver.invalid/hook"
"""A webhook URL that the service accepts, but that has no receiver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleWorkspace:
    """The ids of the resources. ``key``: the key of the sink's only entry; ``delivery``: empty without a delivery."""

    workspace: str
    root: str
    block: str
    sink: str
    key: str
    entry: str
    file: str
    webhook: str
    delivery: str

    @property
    def ids(self) -> frozenset[str]:
        """Return all ids. If a response to another caller contains one of them, that caller has read the workspace."""
        ids = (self.workspace, self.root, self.block, self.sink, self.entry, self.file, self.webhook, self.delivery)
        return frozenset(one for one in ids if one)


async def create_sample_workspace(http: httpx.AsyncClient, *, tried: bool = False) -> SampleWorkspace:
    """Create the resources with the key of ``http``. ``tried``: also attempt a delivery, which resolves a host name."""

    async def made(path: str, **more: Any) -> httpx.Response:
        response = await http.post(path, **more)
        assert response.is_success, response.text
        return response

    workspace = (await made("/v1/workspace", json={"label": "Rocket"})).json()
    base = f"/v1/workspace/{workspace['id']}"
    entries = [{"key": "nozzle.mass", "value": "4 kg", "dataType": "scalar"}]
    sink = (await made(f"{base}/data-sink", json={"label": "Masses", "entries": entries})).json()
    block = (await made(f"{base}/blocks", json={"workspace": workspace["id"], "label": "Tank"})).json()
    query = {"workspaceId": workspace["id"], "fileName": "masses.csv"}
    file = (await made("/v1/cloud-storage", params=query, content=b"a,b\n1,2\n")).json()
    webhook = (await made("/v1/webhooks", json={"url": RECEIVER, "dataEvents": []})).headers["Location"]
    delivery = (await made(f"{webhook}/test")).json()["id"] if tried else ""
    return SampleWorkspace(
        workspace=workspace["id"],
        root=workspace["rootBlock"],
        block=block["id"],
        sink=sink["id"],
        key=entries[0]["key"],
        entry=sink["entries"][0]["id"],
        file=file["id"],
        webhook=webhook.rpartition("/")[2],
        delivery=delivery,
    )
