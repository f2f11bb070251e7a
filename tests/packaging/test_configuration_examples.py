from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ruamel.yaml import YAML

from ingestd.core.mapping import AbsentFields, Mapping
from ingestd.core.record import Batch
from ingestd.core.template import parse_template
from ingestd.registry import connector_class
from ingestd.sdk.formats import format_names
from ingestd.settings.loader import load_settings
from ingestd.settings.model import Settings
from tests.support.json_schema import fits

CONFIG = Path(__file__).parents[2] / "config"
EXAMPLES = [
    "bench-log.yaml",
    "formats.yaml",
    "ingestd.yaml",
    "mapping.yaml",
    "mass-budget.yaml",
    "mqtt-bench.yaml",
    "opcua-line.yaml",
    "pdm-database.yaml",
    "push.yaml",
    "remote-folder.yaml",
    "rest-service.yaml",
    "shared-workbook.yaml",
    "test-bench.yaml",
]
ENVIRONMENT = {
    "INGESTD_API_KEY": "k-1",
    "MQTT_PASSWORD": "s-3",
    "LINE_PASSWORD": "s-4",
    "PDM_URL": "sqlite:///pdm.db",
    "PLM_SECRET": "s-1",
    "BENCH_ACCESS_KEY": "a-1",
    "BENCH_SECRET_KEY": "s-2",
    "BENCH_TOKEN": "0123456789abcdef",
    "WEBHOOK_SECRET": "whsec_MDEyMzQ1Njc4OWFiY2RlZg==",
}
SCHEMA_LINE = "# yaml-language-server: $schema=./ingestd.schema.json\n"


def loaded(name: str) -> Settings:
    return load_settings(CONFIG / name, options_of=connector_class, environment=ENVIRONMENT)


def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CONFIG / "ingestd.schema.json").read_text())
    return found


def test_every_example_is_tested_here() -> None:
    assert sorted(path.name for path in CONFIG.glob("*.yaml")) == EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_can_be_loaded_and_is_valid_under_its_schema(name: str) -> None:
    text = (CONFIG / name).read_text()
    assert text.startswith(SCHEMA_LINE)
    assert fits(YAML(typ="safe", pure=True).load(io.StringIO(text)), schema(), schema())
    assert loaded(name).pipelines


def test_the_example_with_every_key_can_be_loaded_with_every_pipeline_uncommented(tmp_path: Path) -> None:
    text = (CONFIG / "ingestd.yaml").read_text()
    head, marker, tail = text.partition("  # - name: ")
    uncommented = re.sub(r"^  # ", "  ", marker + tail, flags=re.MULTILINE)
    (tmp_path / "ingestd.yaml").write_text(head + uncommented)
    settings = load_settings(tmp_path / "ingestd.yaml", options_of=connector_class, environment=ENVIRONMENT)
    assert [pipeline.source.connector for pipeline in settings.pipelines] == [
        "directory",
        "database",
        "log",
        "file",
        "http",
        "push",
        "remote",
        "mqtt",
        "opcua",
    ]


def test_every_setting_and_every_option_of_a_connector_is_in_the_examples_with_every_key() -> None:
    text = "".join((CONFIG / name).read_text() for name in ("ingestd.yaml", "formats.yaml", "mapping.yaml"))
    written = set(re.findall(r"(?:^|[\s#{,])([a-z_]+):", text, re.MULTILINE))
    known = {key for part in [schema(), *schema()["$defs"].values()] for key in part.get("properties", {})}
    assert {"url", "api_key", "columns", "visible_id", "every", "timezone", "rescan_seconds"} <= known
    assert known - written == set()


def test_the_example_of_mappings_maps_files_as_its_comments_say() -> None:
    runs, parts, assemblies, _ = (Mapping(pipeline.entries) for pipeline in loaded("mapping.yaml").pipelines)
    facts = {"file.name": "RUN07_north.csv", "units.mass": "g", "units.length": "kg"}
    row = {"sample": "1", "mass": " 1.250,5", "length": "-", "remark": "", "state": "ok", "tested": "07.11.2026 12:30"}
    assert mapped(runs, row, facts) == {
        "north.07.1.mass": "1.2505",
        "north.07.1.state": "pass",
        "north.07.1.tested_at": "2026-11-07T11:30:00+00:00",
    }
    part = {"number": "00417", "status": "released", "mass_g": "250", "quantity": "4", "margin": "1", "drawing": "4711"}
    assert mapped(parts, part, {}) == {
        "00417.mass_kg": "1", "00417.margin_percent": "0.4", "00417.drawing": "00004711",
    }  # fmt: skip
    lists = '[{"number": "00417", "properties": [{"name": "mass", "value": 0.10}]}]'
    assert mapped(assemblies, {"id": "A1", "parts": lists}, {}) == {"A1.00417.mass": "0.10"}


def mapped(rule: Mapping, row: dict[str, str], facts: dict[str, str]) -> dict[str, str]:
    records = pl.DataFrame([row])
    positions = pl.Series("position", [2], dtype=pl.Int64)
    batch = Batch(records=records, positions=positions, cursor={}, facts=facts, header=True)
    assert AbsentFields(rule, whole=True).add(batch) is None
    found = rule.apply(records, positions, rule.row_hashes(records, facts), facts)
    assert found.rejects == ()
    return dict(found.entries.select("key", "value").rows())


def test_every_format_is_in_the_examples() -> None:
    types = {pipeline.source.options.model_dump()["format"]["type"] for pipeline in loaded("formats.yaml").pipelines}
    assert types == set(format_names())


def test_every_field_that_an_example_maps_is_in_its_sample() -> None:
    samples = CONFIG / "samples"
    with (samples / "mass-budget.csv").open(newline="", encoding="utf-8") as masses:
        mass_budget = set(next(csv.reader(masses)))
    with (samples / "bill-of-materials.csv").open(newline="", encoding="utf-8") as bill:
        bill_of_materials = set(next(csv.reader(bill)))
    bench = set(json.loads((samples / "test-bench.ndjson").read_text().splitlines()[0]))
    headers = {"mass-budget": mass_budget, "bill-of-materials": bill_of_materials, "test-bench": bench}
    for name in ("mass-budget.yaml", "test-bench.yaml"):
        for pipeline in loaded(name).pipelines:
            for entry in pipeline.entries:
                named = {*parse_template(entry.key).fields, *parse_template(entry.value or "").fields, *entry.columns}
                assert {field for field in named if not field.startswith("file.")} - {"column"} <= headers[
                    pipeline.name
                ]


def test_the_samples_contain_the_difficulties_of_engineering_data() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (CONFIG / "samples").iterdir())
    for hard in ["0.10", "\n00417,", '"Bracket, upper"', "µ", "°", "1e-7", '""as drawn""', "±0.05"]:
        assert hard in text
    for name in ("mass-budget.csv", "bill-of-materials.csv"):
        rows = list(csv.reader(io.StringIO((CONFIG / "samples" / name).read_text(encoding="utf-8"))))
        assert {len(row) for row in rows} == {len(rows[0])}
