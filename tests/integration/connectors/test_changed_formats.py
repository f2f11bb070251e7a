"""Changed settings of a format: files that were read before are read again, and only then."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.file import FileConnector, FileOptions
from connectors.log import LogConnector, LogOptions
from ingestd.sdk import Connector, SourceContext, SourceUnavailable
from ingestd.sdk.formats.installed import UnusableFormat
from tests.support.file_flow import FileFlow

GERMAN = "part;mass\nA;größe\n".encode("cp850")


class Flow(FileFlow):
    """A pipeline of the connector ``kind``, with settings that a restart may change."""

    kind = "directory"

    def connect(self, context: SourceContext) -> Connector:
        own = {name: value for name, value in self.options.items() if name not in {"after", "archive"}}
        if self.kind == "file":
            return FileConnector(FileOptions.model_validate(own), context)
        if self.kind == "log":
            del own["settle_seconds"]
            return LogConnector(LogOptions.model_validate(own), context)
        return super().connect(context)

    def restart_with(self, **options: Any) -> None:
        self.options.update(options)
        self.restart()

    def values_after_pass(self) -> dict[str, str]:
        report = self.pass_once()
        assert (report.away, report.broken) == ("", "")
        return self.held


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Flow]]:
    flows: list[Flow] = []

    def started(kind: str = "directory", **options: Any) -> Flow:
        monkeypatch.setattr(Flow, "kind", kind)
        flows.append(Flow(tmp_path, **options))
        return flows[-1]

    yield started
    for flow in flows:
        flow.close()


@pytest.mark.parametrize(
    ("kind", "path"), [("directory", "drop"), ("file", "drop/a.csv"), ("log", "drop")], ids=["directory", "file", "log"]
)
def test_a_file_is_read_again_if_its_encoding_is_set(kind: str, path: str, start: Callable[..., Flow]) -> None:
    flow = start(kind, path=path, after="keep", archive=None)
    flow.write("a.csv", GERMAN)
    assert flow.values_after_pass() != {"A": "größe"}
    flow.restart_with(format={"type": "csv", "encoding": "cp850"})
    assert flow.values_after_pass() == {"A": "größe"}
    flow.restart()
    assert all(not summary.changed for summary in flow.pass_once().read)
    flow.restart_with(format={"type": "csv", "encoding": "cp437"})
    [summary] = flow.pass_once().read
    assert (summary.updated, summary.unchanged) == (0, 1), "read again, with equal values"


def test_an_archived_file_is_read_again_if_it_is_dropped_again_after_the_advice(start: Callable[..., Flow]) -> None:
    flow = start()
    flow.write("a.csv", GERMAN)
    flow.pass_once()
    [sentence] = flow.notices
    assert sentence.endswith("set encoding: the file is then read again. If it was archived, also drop it again.")
    flow.restart_with(format={"type": "csv", "encoding": "cp850"})
    flow.write("a.csv", GERMAN)
    assert flow.values_after_pass() == {"A": "größe"}
    assert flow.receipt("a~2.csv")["entries"]["updated"] == 1
    assert flow.receipt("a~2.csv")["configuration"] != flow.receipt("a.csv")["configuration"]


def test_other_records_of_a_file_replace_the_values_of_the_former_records(start: Callable[..., Flow]) -> None:
    flow = start("file", path="drop/a.json", deletes="remove", format={"type": "json", "records": "old"})
    flow.write("a.json", '{"old": [{"part": "A", "mass": 1}], "new": [{"part": "B", "mass": 2}]}')
    assert flow.values_after_pass() == {"A": "1"}
    flow.restart_with(format={"type": "json", "records": "new"})
    assert flow.values_after_pass() == {"B": "2"}


def test_other_members_of_a_zip_file_and_another_trailer_are_read_again(start: Callable[..., Flow]) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("x.csv", "y.csv"):
            archive.writestr(name, f"part,mass\n{name[0]},1\n")
    flow = start(after="keep", archive=None, member="x.csv")
    flow.write("a.zip", packed.getvalue())
    assert flow.values_after_pass() == {"x": "1"}
    flow.restart_with(member="y.csv")
    assert flow.values_after_pass() == {"x": "1", "y": "1"}
    (flow.drop / "a.zip").unlink()
    flow.write("b.csv", "part,mass\nA,1\nrows 1,\n")
    assert flow.values_after_pass()["rows 1"] == ""
    flow.restart_with(ready=[{"type": "trailer", "pattern": r"rows (\d+),"}])
    [summary] = flow.pass_once().read
    assert (summary.records, summary.unchanged) == (1, 1)


def test_settings_that_do_not_decide_the_records_and_absent_settings_cause_no_reading(
    start: Callable[..., Flow],
) -> None:
    flow = start(after="keep", archive=None)
    flow.write("a.csv", "part,mass\nA,1\n")
    before = flow.reader.digest
    flow.pass_once()
    for options in (
        {"format": None, "member": "*"},
        {"recursive": True, "ready": ["complete"], "receipt": True},
    ):
        flow.restart_with(**options)
        assert flow.reader.digest == before
    assert not flow.connector.record_settings
    flow.restart_with(format={"type": "csv"})
    named = flow.reader.digest
    flow.restart_with(format="csv")
    assert flow.reader.digest == named != before


def test_a_format_that_cannot_be_loaded_for_a_while_causes_no_reading(start: Callable[..., Flow]) -> None:
    flow = start(after="keep", archive=None, format={"type": "csv", "delimiter": ","})
    flow.write("a.csv", "part,mass\nA,1\n")
    flow.pass_once()
    flow.restart_with(format=UnusableFormat(type="csv", reason="It can't be loaded."))
    with pytest.raises(SourceUnavailable, match="loaded"):
        _ = flow.connector.record_settings
    assert flow.pass_once().away == "It can't be loaded."
    flow.restart_with(format={"type": "csv", "delimiter": ","})
    assert flow.pass_once().read == ()
