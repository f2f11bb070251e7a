"""The data folder may be relative to the working directory of the service."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.support.workspaced_process import DEADLINE_SECONDS, new_key


def test_other_processes_find_a_relative_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    key = new_key(Path("data"))
    words = (sys.executable, "-m", "workspaced", "serve", "--data", "data", "--port", "0", "--admin-port", "0")
    with Path("log").open("w") as log:
        service = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert service.stdout is not None
        url = service.stdout.readline().strip()
        with httpx.Client(base_url=url, headers={"x-api-key": key}, timeout=DEADLINE_SECONDS) as http:
            workspace = http.post("/v1/workspace", json={"label": "Rover"}).json()["id"]
            params = {"workspaceId": workspace, "fileName": "masses.csv"}
            file = http.post("/v1/cloud-storage", params=params, content=b"a,b\n1,2\n").json()["id"]
            deadline = time.monotonic() + DEADLINE_SECONDS
            while (found := http.get(f"/v1/cloud-storage/{file}").json()["conversion"])["state"] != "succeeded":
                assert time.monotonic() < deadline, json.dumps(found)
                time.sleep(0.05)  # a caller gets no notification
    finally:
        service.terminate()
        service.wait(DEADLINE_SECONDS)
        assert service.stdout is not None
        service.stdout.close()
