"""The log connector passes the conformance suite."""

from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.log import LogConnector, LogOptions, tail
from ingestd.sdk import Connector, SourceContext
from ingestd.sdk.testing import ConnectorConformance, Rig


class LogRig(Rig):
    """A log, and a second one; a further line for the same part changes its value."""

    def __init__(self, folder: Path, suffix: str, header: str, row: Callable[[int, str], str], bad: str) -> None:
        self._path = folder / f"a{suffix}"
        self._base = folder
        self._row = row
        self._bad = bad
        self._rows = 40
        for name in ("a", "b"):
            self._path.with_stem(name).write_text(header + "".join(row(number, "0.10") for number in range(self._rows)))

    def connector(self) -> Connector:
        options = LogOptions.model_validate({"path": "."})
        return LogConnector(options, SourceContext(pipeline="t", base=self._base, now=lambda: 4e9))

    def add(self) -> None:
        self._append(self._row(self._rows, "new"))

    def change(self) -> None:
        self._append(self._row(3, "changed"))

    def remove(self) -> None:
        raise AssertionError("nothing vanishes from a log")

    def add_unreadable(self) -> bool:
        self._append(self._bad)
        return True

    def broken(self) -> Connector:
        self._path.with_name("c.csv").write_text("a,a\n1,2\n")
        return self.connector()

    def _append(self, line: str) -> None:
        with self._path.open("a") as log:
            log.write(line)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read blocks so small that forty rows are several batches."""
    monkeypatch.setattr(tail, "BLOCK_BYTES", 100)


class TestCsvLog(ConnectorConformance):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> Rig:
        return LogRig(tmp_path, ".csv", "part,mass\n", lambda n, v: f"P{n},{v}\n", "P1,2,3\n")


class TestNdjsonLog(ConnectorConformance):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> Rig:
        return LogRig(tmp_path, ".ndjson", "", lambda n, v: f'{{"part": "P{n}", "mass": "{v}"}}\n', '{"part"\n')
