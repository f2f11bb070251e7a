"""Where a value comes from, from a file through the daemon to the pages of the service: the real programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx

from tests.support.daemon_process import here
from tests.support.workspaced_process import WorkspaceService, new_key

PAGE = "http://bench-3.example:8402"


def configure(folder: Path, url: str, key: str) -> Path:
    (folder / "drop").mkdir()
    config = folder / "ingestd.yaml"
    source = {"connector": "directory", "path": "drop", "settle_seconds": 0, "after": "keep"}
    config.write_text(
        json.dumps(
            {
                "service": {"url": url, "api_key": key},
                "state": "var/ingestd.db",
                "listen": {"address": "127.0.0.1:8402", "url": PAGE},
                "pipelines": [
                    {
                        "name": "bench-a3",
                        "source": source,
                        "sink": {"workspace": "Rover", "label": "Mass"},
                        "entries": {"key": "{part}.mass", "value": "{mass}"},
                    }
                ],
            }
        )
    )
    return config


def sync(folder: Path, config: Path, rows: str) -> None:
    written = folder / "being-written"
    written.write_text(f"part,mass\n{rows}")
    written.rename(folder / "drop" / "run-0001.csv")
    done = here(folder, "sync", "-c", str(config))
    assert done.returncode == 0, done.stdout + done.stderr


def the_sink(http: httpx.Client) -> tuple[str, str]:
    (workspace,) = http.get("/v1/workspace").json()
    (sink,) = http.get(f"/v1/workspace/{workspace['id']}/data-sink/list").json()
    return f"/v1/workspace/{workspace['id']}", str(sink["id"])


def test_an_entry_its_history_and_the_audit_log_name_the_file_the_row_and_the_pipeline(tmp_path: Path) -> None:
    key = new_key(tmp_path / "service")
    with WorkspaceService(tmp_path / "service") as service, service.client(key) as http:
        assert http.post("/v1/workspace", json={"label": "Rover"}).is_success
        config = configure(tmp_path, service.url, key)
        sync(tmp_path, config, "b,1\na,2\n")
        workspace, sink = the_sink(http)
        history = f"{workspace}/data-sink-history/{sink}"
        assert http.patch(history, json={"changes": 10}).is_success
        sync(tmp_path, config, "b,1\na,3\n")

        def origin_of(name: str) -> dict[str, Any]:
            entry = http.get(f"{workspace}/data-sink/{sink}/{name}", params={"origin": "true"}).json()
            origin: dict[str, Any] = entry["origin"]
            return origin

        first, second = origin_of("b.mass"), origin_of("a.mass")
        assert first == {
            "source": "run-0001.csv",
            "file": "run-0001.csv",
            "row": 2,
            "run": first["run"],
            "pipeline": "bench-a3",
            "link": f"{PAGE}/files?name=run-0001.csv",
        }
        assert second == {**first, "row": 3, "run": second["run"]}
        assert int(second["run"]) > int(first["run"])

        (change, *_) = http.get(f"{history}/entry/a.mass", params={"origin": "true"}).json()
        assert change["before"] == {"value": "2", "dataType": "scalar", "origin": {**first, "row": 3}}
        assert change["after"] == {"value": "3", "dataType": "scalar", "origin": second}
        rows = http.get("/v1/audit-log", params={"action": "data_sink.*"}).json()
        assert "from run-0001.csv, pipeline bench-a3" in {row.get("origin") for row in rows}
        trace = here(tmp_path, "trace", "a.mass", "-c", str(config))
        assert "run-0001.csv, row 3," in trace.stdout
