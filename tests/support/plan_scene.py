"""Three sources that write into two sinks, commands that plan and perform their sync, and the content of the service."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from tests.support.daemon_process import here
from tests.support.document_server import DocumentServer

Values: TypeAlias = dict[str, dict[str, tuple[str | None, str]]]
"""(value, data type) by label of the sink and key."""

LABELS = ("Budget", "Readings")
GUARD = "{removed: 60, changed: 60, minimum: 4, factors: null}"


class PlanScene:
    """A file with ``deletes: remove`` and a guard, a folder with an archive, and a log; the first two share a sink."""

    def __init__(self, path: Path, server: DocumentServer) -> None:
        self.path = path
        self.server = server
        for folder in ("drop", "logs"):
            (path / folder).mkdir(parents=True)
        self.config = path / "ingestd.yaml"
        self.state = path / "var" / "ingestd.db"
        self.configure()

    def configure(self, *, value: str = "{mass}", guard: str = GUARD, parts: str = "parts.csv") -> None:
        """Write the configuration. ``parts``: the file of the first pipeline; with another file, there is no folder pipeline."""
        entries = f"{{key: '{{part}}.mass', value: '{value}'}}"
        drop = (
            "  - {name: drop, source: {connector: directory, path: drop, settle_seconds: 0, after: archive, archive: done},\n"
            f"     sink: {{workspace: Bench, label: Budget}}, entries: {entries}}}\n"
        )
        self.config.write_text(
            f"service: {{url: '{self.server.url}', api_key: '{self.server.api_key}'}}\nstate: var/ingestd.db\npipelines:\n"
            f"  - {{name: parts, source: {{connector: file, path: {parts}, format: csv, settle_seconds: 0, deletes: remove}},\n"
            f"     guard: {guard}, sink: {{workspace: Bench, label: Budget}}, entries: {entries}}}\n"
            f"{drop if parts == 'parts.csv' else ''}"
            "  - {name: readings, source: {connector: log, path: logs, pattern: '*.csv'},\n"
            "     sink: {workspace: Bench, label: Readings}, entries: {key: '{part}.mass', value: '{mass}'}}\n",
            encoding="utf-8",
        )

    def write_parts(self, rows: Mapping[str, str], name: str = "parts.csv") -> None:
        self._replace(self.path / name, rows.items())

    def write_drop(self, name: str, rows: Iterable[tuple[str, str]]) -> None:
        self._replace(self.path / "drop" / name, rows)

    def append_readings(self, rows: Iterable[tuple[str, str]]) -> None:
        log = self.path / "logs" / "bench.csv"
        with log.open("a", encoding="utf-8") as file:
            if not file.tell():
                file.write("part,mass\n")
            file.writelines(f"{part},{mass}\n" for part, mass in rows)

    def _replace(self, path: Path, rows: Iterable[tuple[str, str]]) -> None:
        hidden = self.path / "new"
        hidden.write_text("part,mass\n" + "".join(f"{part},{mass}\n" for part, mass in rows), encoding="utf-8")
        hidden.rename(path)

    def here(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in this process."""
        return here(self.path, *words, "-c", str(self.config))

    def plan(self, *words: str) -> dict[str, Any]:
        """Return the plan with all changes."""
        found: dict[str, Any] = json.loads(self.here("plan", "--json", "--rows", "100000", *words).stdout)
        return found

    def values(self) -> Values:
        """Return the entries of the service. A sink that does not exist is empty."""
        return {label: self._values(label) for label in LABELS}

    def _values(self, label: str) -> dict[str, tuple[str | None, str]]:
        return self.server.values(label) if self.server.store.by_label(label) else {}

    def fingerprint(self) -> dict[str, str]:
        """Return the digest, mode and time of each file, except SQLite's temporary files."""
        return {
            str(path.relative_to(self.path)): f"{path.stat().st_mode:o} {path.stat().st_mtime_ns} {_digest(path)}"
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and not path.name.endswith(("-shm", "-wal"))
        }


def apply_plan(values: Values, plan: Mapping[str, Any]) -> Values:
    """Return ``values`` after a plan's changes, except held partitions. Check that the plan's old values are right."""
    after = {label: dict(entries) for label, entries in values.items()}
    for partition in plan["partitions"]:
        sink = after[partition["sink"].removesuffix(" in Bench")]
        for change in partition["changes"] if not partition["held"] else ():
            former = (change["old"], change["old_type"]) if change["kind"] != "created" else None
            assert sink.get(change["key"]) == former, change
            if change["kind"] == "removed":
                del sink[change["key"]]
            else:
                sink[change["key"]] = (change["new"], change["new_type"])
    return after


@contextmanager
def plan_scene(path: Path) -> Iterator[PlanScene]:
    """Yield a scene with a service that implements only the interface document."""
    with DocumentServer() as server:
        server.workspace("Bench")
        yield PlanScene(path, server)


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
