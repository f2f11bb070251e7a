"""Several processes of the service on one database, moving the same blocks."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from tests.support.workspaced_process import WorkspaceService, new_key

_PROCESSES = 3
_CALLERS = 6
_MOVES = 40
_BLOCKS = 12


def _moves(service: WorkspaceService, key: str, blocks: str, ids: list[str], seed: int) -> list[httpx.Response]:
    dice = random.Random(seed)
    with service.client(key) as http:
        return [
            http.patch(f"{blocks}/{dice.choice(ids)}", json={"parentBlock": dice.choice(ids)}) for _ in range(_MOVES)
        ]


def test_moves_by_several_processes_never_create_a_cycle(tmp_path: Path) -> None:
    # contract B4
    data = tmp_path / "data"
    key = new_key(data)
    with ExitStack() as stack:
        services = [stack.enter_context(WorkspaceService(data)) for _ in range(_PROCESSES)]
        http = stack.enter_context(services[0].client(key))
        workspace: dict[str, Any] = http.post("/v1/workspace", json={"label": "a"}).json()
        blocks = f"/v1/workspace/{workspace['id']}/blocks"
        ids = [http.post(blocks, json={"workspace": workspace["id"]}).json()["id"] for _ in range(_BLOCKS)]
        with ThreadPoolExecutor(_CALLERS) as pool:
            runs = [
                pool.submit(_moves, services[seed % _PROCESSES], key, blocks, ids, seed) for seed in range(_CALLERS)
            ]
            responses = [response for run in runs for response in run.result()]
        assert {response.status_code for response in responses} == {200, 422}
        assert {response.json()["code"] for response in responses if response.status_code == 422} == {"cycle"}
        listed = http.get(blocks).json()
    by_id = {block["id"]: block for block in listed}
    assert set(by_id) == {workspace["rootBlock"], *ids}
    for block in listed:
        path = block["path"].split("/")[1:]
        assert (path[0], path[-1]) == (workspace["rootBlock"], block["id"])
        assert [by_id[above]["parentBlock"] for above in path] == ["", *path[:-1]]
        for child in block["children"]:
            assert by_id[child]["parentBlock"] == block["id"]
