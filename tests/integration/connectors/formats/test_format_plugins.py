"""Formats of other packages: found by entry points, used by configuration, and harmless if they can't be used."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from connectors.directory import DirectoryConnector
from connectors.file import FileConnector
from ingestd.core.errors import ConfigurationError
from ingestd.registry import connector_class
from ingestd.sdk import SourceBroken, SourceContext, SourceUnavailable
from ingestd.sdk.formats import Format, FormatSetting, configured_format, decode, format_names
from ingestd.settings.loader import load_settings
from tests.support.plugins import Installer

GROUP = "ingestd.formats"
STATUS = '''
from typing import Literal
import os
import polars as pl
from ingestd.sdk.formats import Format, IsolatedFormat, RecordChunk, RecordLocation, row_positions

def chunk(pairs):
    columns = {"name": [name for name, _ in pairs], "value": [value for _, value in pairs]}
    return RecordChunk(records=pl.DataFrame(columns, schema={"name": pl.String, "value": pl.String}),
                       positions=row_positions(range(1, len(pairs) + 1)), end=RecordLocation(row=len(pairs)))

class Status(Format):
    """Lines of the form name = value."""
    suffixes = (".status",)
    type: Literal["status"] = "status"
    separator: str = "="
    def read(self, file, name):
        lines = (line.split(self.separator) for line in file.read().decode().splitlines())
        yield chunk([(name.strip(), value.strip()) for name, value in lines])

class OwnProcess(IsolatedFormat):
    """The id of the process that parses it."""
    type: Literal["own_process"] = "own_process"
    def parse(self, file, name):
        yield chunk([("pid", str(os.getpid()))])

class Later(Status):
    contract = 2
    type: Literal["later"] = "later"

class Misnamed(Status):
    pass

NOT_A_CLASS = 7
'''


def context(folder: Path) -> SourceContext:
    return SourceContext(pipeline="bench", base=folder, now=lambda: 1_000.0)


def records(connector: DirectoryConnector | FileConnector) -> list[dict[str, Any]]:
    batches: list[Any] = [batch for part in connector.partitions() for batch in connector.read(part, None)]
    return [row for batch in batches for row in batch.records.to_dicts()]


def folder_source(folder: Path, **options: Any) -> DirectoryConnector:
    found = DirectoryConnector.Options.model_validate_json(
        json.dumps({"path": str(folder), "settle_seconds": 0, **options}), strict=True
    )
    return DirectoryConnector(found, context(folder))


def test_a_folder_reads_files_of_a_format_of_another_package(installer: Installer, tmp_path: Path) -> None:
    installer.install("acme-status", "acme_status", STATUS, GROUP, status="Status")
    (tmp_path / "oven.STATUS").write_text("temperature: 180.50\n")
    (tmp_path / "other.csv").write_text("name,value\n")
    source = folder_source(tmp_path, format={"type": "status", "separator": ":"}, pattern="*.status")
    assert records(source) == [{"name": "temperature", "value": "180.50"}]
    assert "status" in format_names()
    by_default = folder_source(tmp_path, format={"type": "status"})
    assert "*.status" in by_default.options.patterns
    assert "*.status" not in folder_source(tmp_path).options.patterns


def test_a_format_of_another_package_can_be_parsed_in_a_process_of_its_own(installer: Installer) -> None:
    installer.install("acme-status", "acme_isolated", STATUS, GROUP, own_process="OwnProcess")
    (chunk,) = decode(b"x", configured_format("own_process"), name="a")
    assert chunk.records.columns == ["name", "value"]
    assert chunk.records["value"][0] != str(os.getpid())


BROKEN = (
    "The format 'status' of acme-status 1.2 can't be loaded: ModuleNotFoundError: No module named 'no_such_library'. "
    "Repair or update acme-status 1.2, or uninstall it."
)
LATER = (
    "The format 'later' of acme-status 1.2 is for version 2 of the format contract; this ingestd has version 1. "
    "Install a version of it for contract 1."
)
NO_CLASS = (
    "The format 'status' of acme-status 1.2 is no subclass of ingestd.sdk.formats.Format (acme_no_class:NOT_A_CLASS). "
    "Update acme-status 1.2."
)
UNUSABLE = {
    "two": (
        "status",
        "Status",
        "The format 'status' is offered by acme-status 1.2 and other-status 1.2. Uninstall all of",
    ),
    "broken": ("status", "Status", BROKEN),
    "later": ("later", "Later", LATER),
    "no_class": ("status", "NOT_A_CLASS", NO_CLASS),
    "misnamed": (
        "other",
        "Misnamed",
        "The format 'other' is a class without the field type: Literal['other'] (acme_misnamed).",
    ),
}
"""The name of a format, its attribute in the module, and how the sentence begins."""


def install(installer: Installer, case: str) -> tuple[str, str]:
    name, attribute, sentence = UNUSABLE[case]
    code = "import no_such_library\n" if case == "broken" else STATUS
    installer.install("acme-status", f"acme_{case}", code, GROUP, **{name: attribute})
    if case == "two":
        installer.install("other-status", "acme_second", STATUS, GROUP, status="Status")
    return name, sentence


@pytest.mark.parametrize("case", UNUSABLE)
def test_a_format_that_cannot_be_used_stops_only_the_pipelines_that_use_it(
    case: str, installer: Installer, tmp_path: Path
) -> None:
    name, sentence = install(installer, case)
    drop = tmp_path / "drop"
    drop.mkdir()
    (drop / "a.csv").write_text("name,value\nA,1.50\n")
    sources = [{"connector": "directory", "path": "drop", "settle_seconds": 0, "format": one} for one in ("csv", name)]
    settings = write_and_load(tmp_path, sources)
    good, bad = (DirectoryConnector(one.source.options, context(tmp_path)) for one in settings.pipelines)
    assert records(good) == [{"name": "A", "value": "1.50"}]
    with pytest.raises(SourceUnavailable) as refused:
        records(bad)
    assert str(refused.value).startswith(sentence)
    assert (drop / "a.csv").exists()  # it is read once the format can be used


def test_a_pipeline_with_the_format_of_a_file_that_cannot_be_used_is_checked_with_the_reason(
    installer: Installer, tmp_path: Path
) -> None:
    name, _ = install(installer, "broken")
    (tmp_path / "a.status").write_text("a=1\n")
    options = FileConnector.Options.model_validate({"path": tmp_path / "a.status", "format": name})
    with pytest.raises(SourceUnavailable, match="no_such_library"):
        records(FileConnector(options.model_copy(update={"settle_seconds": 0}), context(tmp_path)))
    steps = {step.name: step.sentence for step in FileConnector(options, context(tmp_path)).verify()}
    assert steps["format"] == BROKEN
    folder = {step.name: step.sentence for step in folder_source(tmp_path, format=name).verify()}
    assert folder["format"] == BROKEN


def test_a_name_that_no_package_has_is_a_mistake_of_the_configuration(tmp_path: Path) -> None:
    source = {"connector": "directory", "path": "drop", "format": "cvs"}
    with pytest.raises(ConfigurationError) as refused:
        write_and_load(tmp_path, [source])
    (mistake,) = refused.value.mistakes
    assert mistake.key == "pipelines[0].source.format"
    assert "There is no format 'cvs'. Did you mean 'csv'?" in mistake.sentence


def test_a_wrong_setting_of_a_format_is_reported_at_its_key(tmp_path: Path) -> None:
    source = {"connector": "directory", "path": "drop", "format": {"type": "csv", "header_row": "3", "delimeter": ";"}}
    with pytest.raises(ConfigurationError) as refused:
        write_and_load(tmp_path, [source])
    assert [mistake.key for mistake in refused.value.mistakes] == [
        "pipelines[0].source.format.header_row",
        "pipelines[0].source.format.delimeter",
    ]


def write_and_load(folder: Path, sources: list[dict[str, Any]]) -> Any:
    pipelines = [
        {
            "name": f"p{at}",
            "source": source,
            "entries": {"key": "{name}", "value": "{value}"},
            "sink": {"workspace": "Bench", "label": f"Sink {at}"},
        }
        for at, source in enumerate(sources)
    ]
    service = {"url": "http://127.0.0.1:8400", "api_key": "test-key"}
    path = folder / "ingestd.yaml"
    path.write_text(json.dumps({"service": service, "state": "ingestd.db", "pipelines": pipelines}))
    return load_settings(path, options_of=connector_class, environment={})


class Receiver(BaseModel):
    """The options of a connector that decodes what it receives."""

    format: FormatSetting = None


@pytest.mark.parametrize(
    ("setting", "data", "expected"),
    [
        ("csv", b"part;mass\nA;0.10\n", [{"part": "A", "mass": "0.10"}]),
        (
            {"type": "json", "records": "rows"},
            b'{"rows": [{"part": "A", "mass": 0.10}]}',
            [{"part": "A", "mass": "0.10"}],
        ),
        ({"type": "xml"}, b"<r><p><mass>1e-7</mass></p></r>", [{"mass": "1e-7"}]),
    ],
)
def test_a_connector_decodes_bytes_with_any_configured_format(setting: Any, data: bytes, expected: Any) -> None:
    configured = Receiver.model_validate_json(json.dumps({"format": setting}), strict=True).format
    assert configured is not None
    (chunk,) = decode(data, configured, name="bench/7")
    batch = chunk.to_batch({"message": 7}, {"topic": "bench/7"})
    assert batch.records.to_dicts() == expected
    assert (batch.cursor, batch.facts["topic"]) == ({"message": 7}, "bench/7")


class Failing(Format):
    """Fails in an unforeseen way."""

    type: str = "failing"

    def read(self, file: Any, name: str) -> Iterator[Any]:
        del file, name
        raise KeyError("channel 3")


def test_bytes_that_a_format_cannot_read_are_reported_by_a_sentence() -> None:
    with pytest.raises(SourceBroken, match=r"^bench/7 is not well-formed XML: "):
        list(decode(b"<a>", configured_format("xml"), name="bench/7"))
    with pytest.raises(
        SourceBroken, match=r"bench/7 can't be read as failing: its parser failed, KeyError: 'channel 3'\."
    ):
        list(decode(b"x", Failing(), name="bench/7"))


def test_no_format_is_imported_before_it_is_used(installer: Installer, tmp_path: Path) -> None:
    installer.install("acme-status", "acme_unused", STATUS, GROUP, status="Status")
    assert records(folder_source(tmp_path)) == []
    assert "acme_unused" not in sys.modules
