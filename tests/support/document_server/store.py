"""The records of the document and their rules. If there is a file, each write is durable.

The file is a log with one JSON line for each write, flushed to the disk before the response. An incomplete last line belongs to
a write that a kill interrupted before its response, so it is ignored when the log is read again.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Refusal(Exception):
    """A response other than 2xx."""

    def __init__(self, status: int, error: str) -> None:
        self.status = status
        self.error = error
        super().__init__(error)


def invalid() -> Refusal:
    return Refusal(400, "Invalid request")


def forbidden() -> Refusal:
    return Refusal(403, "Forbidden")


def not_found() -> Refusal:
    return Refusal(404, "Not found")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _stamps() -> dict[str, str]:
    now = _now()
    return {"createdAt": now, "updatedAt": now, "createdBy": "tester", "updatedBy": "tester"}


def _optional_text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise invalid()
    return value


def _required_text(body: Mapping[str, Any], name: str) -> str:
    value = _optional_text(body, name)
    if not value:
        raise invalid()
    return value


class Store:
    """Workspaces and sinks. ``mass_creates``: a mass update with an unknown key creates an entry; else it responds 404."""

    def __init__(self, *, mass_creates: bool = False, file: Path | None = None) -> None:
        self.mass_creates = mass_creates
        self.workspaces: dict[str, dict[str, Any]] = {}
        self.sinks: dict[str, dict[str, Any]] = {}
        self.entries: dict[str, dict[str, dict[str, Any]]] = {}
        self._log = None
        if file is not None:
            self._replay(file)
            self._log = file.open("ab")

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    def values(self, sink: str) -> dict[str, tuple[str | None, str]]:
        """Return (value, data type) by key of a sink."""
        return {key: (entry["value"], entry["dataType"]) for key, entry in self.entries[sink].items()}

    def by_label(self, label: str) -> list[str]:
        """Return the ids of the sinks with a label."""
        return [sink["id"] for sink in self.sinks.values() if sink["label"] == label]

    # ---------------------------------------------------------------------------------------------- durability

    def _replay(self, file: Path) -> None:
        if not file.exists():
            return
        content = file.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            with file.open("r+b") as log:
                log.truncate(len(whole))
        for line in whole.splitlines():
            self._apply(json.loads(line))

    def _write(self, change: dict[str, Any]) -> None:
        if self._log is not None:
            self._log.write(json.dumps(change).encode() + b"\n")
            self._log.flush()
            os.fsync(self._log.fileno())
        self._apply(change)

    def _apply(self, change: dict[str, Any]) -> None:
        match change["do"]:
            case "workspace":
                self.workspaces[change["record"]["id"]] = change["record"]
            case "sink":
                self.sinks[change["record"]["id"]] = change["record"]
                self.entries.setdefault(change["record"]["id"], {}).update(
                    (entry["key"], entry) for entry in change["entries"]
                )
            case "drop sink":
                del self.sinks[change["sink"]], self.entries[change["sink"]]
            case "entry":
                self.entries[change["record"]["dataSinkId"]][change["record"]["key"]] = change["record"]
            case "drop entry":
                del self.entries[change["sink"]][change["key"]]

    # ---------------------------------------------------------------------------------------------- workspaces

    def create_workspace(self, body: Mapping[str, Any]) -> dict[str, Any]:
        record = {
            "id": _optional_text(body, "id") or str(uuid.uuid4()),
            "label": _required_text(body, "label"),
            "rootBlock": str(uuid.uuid4()),
            **_stamps(),
        }
        self._write({"do": "workspace", "record": record})
        return record

    def workspace(self, workspace: str) -> dict[str, Any]:
        if workspace not in self.workspaces:
            raise forbidden()
        return self.workspaces[workspace]

    # --------------------------------------------------------------------------------------------------- sinks

    def list_sinks(self, workspace: str) -> list[dict[str, Any]]:
        self.workspace(workspace)
        return [sink for sink in self.sinks.values() if sink["workspaceId"] == workspace]

    def sink(self, workspace: str, sink: str) -> dict[str, Any]:
        self.workspace(workspace)
        found = self.sinks.get(sink)
        if found is None or found["workspaceId"] != workspace:
            raise not_found()
        return found

    def whole_sink(self, workspace: str, sink: str) -> dict[str, Any]:
        return {**self.sink(workspace, sink), "entries": list(self.entries[sink].values())}

    def create_sink(self, workspace: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self.workspace(workspace)
        serial = len(self.sinks) + 1
        record = {
            "id": _optional_text(body, "id") or str(uuid.uuid4()),
            "workspaceId": workspace,
            "label": _required_text(body, "label"),
            "description": _optional_text(body, "description"),
            "tags": _optional_text(body, "tags"),
            "visibleId": f"SNK-{serial}",
            "serial": serial,
            "icon": "{ source: 'DevIcon', name: 'python' }",
            **_stamps(),
        }
        entries = [self._entry(str(record["id"]), entry) for entry in body.get("entries") or []]
        if len({entry["key"] for entry in entries}) < len(entries):
            raise invalid()
        self._write({"do": "sink", "record": record, "entries": entries})
        return self.whole_sink(workspace, str(record["id"]))

    def patch_sink(self, workspace: str, sink: str, body: Mapping[str, Any]) -> object:
        record = dict(self.sink(workspace, sink))
        record.update({name: _optional_text(body, name) for name in ("label", "description", "tags") if name in body})
        self._write({"do": "sink", "record": {**record, "updatedAt": _now()}, "entries": []})
        return None

    def delete_sink(self, workspace: str, sink: str) -> object:
        self.sink(workspace, sink)
        self._write({"do": "drop sink", "sink": sink})
        return None

    # ------------------------------------------------------------------------------------------------- entries

    def _entry(self, sink: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "id": _optional_text(body, "id") or str(uuid.uuid4()),
            "key": _required_text(body, "key"),
            "dataSinkId": sink,
            "value": _optional_text(body, "value"),
            "dataType": _required_text(body, "dataType"),
            **_stamps(),
        }

    def entry(self, workspace: str, sink: str, key: str) -> dict[str, Any]:
        self.sink(workspace, sink)
        if key not in self.entries[sink]:
            raise not_found()
        return self.entries[sink][key]

    def create_entry(self, workspace: str, sink: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self.sink(workspace, sink)
        record = self._entry(sink, body)
        if record["key"] in self.entries[sink]:
            raise Refusal(409, "The key exists")
        self._write({"do": "entry", "record": record})
        return record

    def patch_entry(self, workspace: str, sink: str, key: str, body: Mapping[str, Any]) -> dict[str, Any]:
        record = dict(self.entry(workspace, sink, key))
        record.update({name: _optional_text(body, name) for name in ("value", "dataType") if name in body})
        self._write({"do": "entry", "record": {**record, "updatedAt": _now()}})
        return self.entries[sink][key]

    def delete_entry(self, workspace: str, sink: str, key: str) -> object:
        self.entry(workspace, sink, key)
        self._write({"do": "drop entry", "sink": sink, "key": key})
        return None

    def mass(self, workspace: str, sink: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self.sink(workspace, sink)
        if set(body) - {"key", "value"}:
            raise invalid()
        key, value = _required_text(body, "key"), body.get("value")
        if not isinstance(value, str):
            raise invalid()
        if key not in self.entries[sink]:
            if not self.mass_creates:
                raise not_found()
            return self.create_entry(workspace, sink, {"key": key, "value": value, "dataType": "scalar"})
        return self.patch_entry(workspace, sink, key, {"value": value})
