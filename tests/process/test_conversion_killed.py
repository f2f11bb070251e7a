"""Conversions when the process of the real service is killed during one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.cloud_files import DEADLINE_SECONDS, FILES
from tests.support.workspaced_process import WorkspaceService, new_key

_CSV = b"part,mass\n" + b"00417,1.5\n" * 500_000


def _upload(http: httpx.Client, workspace: str, name: str, content: bytes) -> str:
    response = http.post(FILES, params={"workspaceId": workspace, "fileName": name}, content=content)
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def _conversion(http: httpx.Client, file: str, *states: str) -> dict[str, Any]:
    """Return the conversion when it is in one of these states."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        found: dict[str, Any] = http.get(f"{FILES}/{file}").json()["conversion"]
        if found["state"] in states:
            return found
        time.sleep(0.01)  # a caller gets no notification
    raise AssertionError(f"the conversion of {file} did not come to be {' or '.join(states)}")


def _child_of(process: int) -> int:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.01)  # a claim is committed before its process starts
    raise AssertionError("no conversion began")


def _runs(process: int) -> bool:
    """Return whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_another_process_takes_over_conversions_of_a_killed_one(tmp_path: Path) -> None:
    # contract C6
    data = tmp_path / "data"
    key = new_key(data)
    environment = {"WORKSPACED_CONVERSION_LEASE_SECONDS": "2"}
    with (
        WorkspaceService(data, environment=environment) as survivor,
        WorkspaceService(data, environment={**environment, "WORKSPACED_CONVERSION_AT_ONCE": "1"}) as victim,
        victim.client(key) as http,
        survivor.client(key) as other,
    ):
        workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]
        file = _upload(http, workspace, "long.csv", _CSV)
        assert _conversion(http, file, "in_progress")["attempt"] == 1
        child = _child_of(victim.process.pid)
        victim.kill()
        deadline = time.monotonic() + DEADLINE_SECONDS
        while _runs(child):
            assert time.monotonic() < deadline, "the conversion's process outlives its parent"
            time.sleep(0.01)
        assert _conversion(other, file, "in_progress")["attempt"] == 1, "held until the lease ends"
        _upload(other, workspace, "wake.csv", b"a\n1\n")  # makes the other process look, and wait for the lease's end
        done = _conversion(other, file, "succeeded", "failed")
        assert (done["state"], done["attempt"]) == ("succeeded", 2)
        preview = other.get(f"{FILES}/download/{file}?output=preview.json").json()
        assert preview["rowCount"] == 500_000


def test_an_upload_to_a_killed_process_leaves_nothing_after_another_process_cleans_up(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = new_key(data)
    incoming = data / "blobs" / "incoming"
    with WorkspaceService(data) as victim, victim.client(key) as http:
        workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]

        def endless() -> Any:
            while True:
                yield b"x" * 1_048_576
                if any(incoming.iterdir()):
                    victim.kill()
                    return

        with pytest.raises(httpx.TransportError):
            http.post(FILES, params={"workspaceId": workspace, "fileName": "a.bin"}, content=endless())
        assert len(list(incoming.iterdir())) == 1
    with WorkspaceService(data) as service, service.client(key) as http:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while any(incoming.iterdir()):
            assert time.monotonic() < deadline, "unfinished files are not deleted"
            time.sleep(0.01)  # maintenance sends no signal
        assert http.get(FILES, params={"workspaceId": workspace}).json() == []
