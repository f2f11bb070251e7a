"""A daemon's configuration with a pipeline for each database, and the entries that arrive in their sinks."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.database_scene import DatabaseScene
from tests.support.workspaced_process import WorkspaceService

_DEADLINE_SECONDS = 60.0


class DatabasePipelines:
    """Pipelines that follow the changes of table ``p``; the sink has the name of the pipeline."""

    def __init__(
        self, folder: Path, service: WorkspaceService, key: str, scenes: Mapping[str, DatabaseScene], **options: Any
    ) -> None:
        self._http = service.client(key)
        self._http.post("/v1/workspace", json={"label": "Bench"}).raise_for_status()
        self._scenes = scenes
        source = {"connector": "database", "table": "p", "key": "id", "mode": "changes", "deletes": "remove"}
        pipelines = [
            {
                "name": name,
                "source": source
                | {"url": scene.url, **({"cursor": "at"} if scene.kind == "mariadb" else {})}
                | options,
                "entries": {"key": "{id}", "value": "{v}"},
                "sink": {"workspace": "Bench", "label": name},
                "schedule": {"every": "1s"},
            }
            for name, scene in scenes.items()
        ]
        settings = {"service": {"url": service.url, "api_key": key}, "state": "ingestd.db", "pipelines": pipelines}
        (folder / "ingestd.yaml").write_text(json.dumps(settings))  # JSON is YAML

    def entries(self) -> dict[str, dict[str, str]]:
        """Return key and value of each entry, by sink."""
        (workspace,) = self._http.get("/v1/workspace").raise_for_status().json()
        sinks = self._http.get(f"/v1/workspace/{workspace['id']}/data-sink").raise_for_status().json()
        return {sink["label"]: {entry["key"]: entry["value"] for entry in sink["entries"]} for sink in sinks}

    def rows(self) -> dict[str, dict[str, str]]:
        """Return key and value of each row, by pipeline."""
        return {name: {key: str(row[1]) for key, row in scene.rows().items()} for name, scene in self._scenes.items()}

    def wait_until_equal(self) -> None:
        """Wait until the sinks have the rows of the tables."""
        until, rows = time.monotonic() + _DEADLINE_SECONDS, self.rows()
        while (held := self.entries()) != rows:
            if time.monotonic() > until:
                raise AssertionError(f"the sinks have {held}, not {rows}")
            time.sleep(0.05)  # the service does not signal what arrives

    def close(self) -> None:
        self._http.close()
