"""Every table of tests/golden/formats: bytes that real tools write, with the expected records, rejections or message."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ruamel.yaml import YAML

from connectors.formats import resolve_format
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats import configured_format, format_names
from tests.support.format_records import located, read, read_named, rejects, rows, sentence
from tests.support.measurement_files import measured
from tests.support.workbook_bytes import xlsx

TABLES = Path(__file__).parents[3] / "golden" / "formats"


def cases() -> Iterator[Any]:
    for table in sorted(TABLES.glob("*.yaml")):
        for case in YAML(typ="safe").load(table):
            yield pytest.param(case, id=f"{table.stem}: {case['case']}")


def content(case: dict[str, Any]) -> bytes:
    if "file" in case:
        return (TABLES / str(case["file"])).read_bytes()
    if "measured" in case:
        return measured(case["format"]["type"], case["measured"])
    if "columns" in case:
        return columnar(case)
    if "cells" in case:
        return xlsx(*case["cells"])
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    return str(case["text"]).encode(case.get("encoding", "utf-8"))


TYPES: dict[str, Callable[[pl.Series], pl.Series]] = {
    "Decimal(10,2)": lambda text: text.cast(pl.Decimal(10, 2)),
    "Date": lambda text: text.str.to_date(),
    "Datetime": lambda text: text.str.to_datetime(),
    "Binary": lambda text: text.cast(pl.Binary),
}


def columnar(case: dict[str, Any]) -> bytes:
    """Write a file of typed columns: ``types`` are names of polars, to which the values are cast."""
    columns = {name: pl.Series(name, values) for name, values in case["columns"].items()}
    frame = pl.DataFrame(columns | {name: TYPES[kind](columns[name]) for name, kind in case.get("types", {}).items()})
    out = io.BytesIO()
    (frame.write_parquet if case["name"].endswith(".parquet") else frame.write_ipc)(out)
    return out.getvalue()


@pytest.mark.parametrize("case", list(cases()))
def test_an_unusual_input_gives_exactly_these_records_or_this_message(case: dict[str, Any]) -> None:
    name = case.get("name", "x.csv")
    file_format = resolve_format(name, configured_format(case["format"]) if "format" in case else None)
    if "broken" in case:
        assert sentence(file_format, content(case), name) == case["broken"]
        return
    chunks = read(file_format, content(case), name)
    assert [list(found) for found in located(chunks)] == case["records"]
    assert [list(found) for found in rejects(chunks).items()] == case.get("rejects", [])
    unreadable = [[one.name, one.reason, one.rows and list(one.rows)] for one in chunks[-1].unreadable]
    assert unreadable == case.get("unreadable", [])
    facts = chunks[-1].facts
    assert {key: facts.get(key) for key in case.get("facts", {})} == case.get("facts", {})


def test_every_format_has_its_table() -> None:
    tables = {table.stem for table in TABLES.glob("*.yaml")}
    assert tables >= set(format_names())


def test_an_item_that_is_nested_too_deeply_is_rejected_alone() -> None:
    data = b'[{"a": %s}, {"a": 1}, {"a": 2}]' % (b"[" * 5_000 + b"]" * 5_000)
    chunks = read_named("a.json", data)
    assert rejects(chunks) == {1: "Item 1 is nested too deeply."}
    assert rows(chunks) == [("1",), ("2",)]


@pytest.mark.parametrize(("name", "label"), [("a.yaml", "YAML"), ("a.toml", "TOML")])
def test_a_document_that_is_nested_too_deeply_is_reported_in_one_sentence(name: str, label: str) -> None:
    data = (b"a = " if label == "TOML" else b"a: ") + b"[" * 5_000 + b"]" * 5_000
    with pytest.raises(SourceBroken, match=f"{name} can't be read as {label}: it is nested too deeply."):
        read_named(name, data)
