"""Every table of tests/golden/formats: bytes that real tools write, with the expected records, rejections or message."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pytest
from ruamel.yaml import YAML

from connectors.formats import RecordChunk, resolve_format
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats import configured_format, format_names
from tests.support.measurement_files import measured

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
        book, out = openpyxl.Workbook(), io.BytesIO()
        for row in case["cells"]:
            book.worksheets[0].append(row)
        book.save(out)
        return out.getvalue()
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    return str(case["text"]).encode(case.get("encoding", "utf-8"))


def columnar(case: dict[str, Any]) -> bytes:
    """Write a file of typed columns: ``types`` are names of polars, to which the values are cast."""
    types: dict[str, Callable[[pl.Series], pl.Series]] = {
        "Decimal(10,2)": lambda text: text.cast(pl.Decimal(10, 2)),
        "Date": lambda text: text.str.to_date(),
        "Datetime": lambda text: text.str.to_datetime(),
        "Binary": lambda text: text.cast(pl.Binary),
    }
    frame = pl.DataFrame(
        {
            name: types[case["types"][name]](pl.Series(name, values))
            if name in case.get("types", {})
            else pl.Series(name, values)
            for name, values in case["columns"].items()
        }
    )
    out = io.BytesIO()
    if case["name"].endswith(".parquet"):
        frame.write_parquet(out)
    else:
        frame.write_ipc(out)
    return out.getvalue()


def rows(chunks: list[RecordChunk]) -> list[list[Any]]:
    """Return position and fields of each record, without absent fields."""
    return [
        [position, {name: value for name, value in zip(chunk.records.columns, row, strict=True) if value is not None}]
        for chunk in chunks
        for position, row in zip(chunk.positions, chunk.records.rows(), strict=True)
    ]


@pytest.mark.parametrize("case", list(cases()))
def test_an_unusual_input_gives_exactly_these_records_or_this_message(case: dict[str, Any]) -> None:
    name = case.get("name", "x.csv")
    file_format = resolve_format(name, configured_format(case["format"]) if "format" in case else None)
    if "broken" in case:
        with pytest.raises(SourceBroken) as broken:
            list(file_format.read(io.BytesIO(content(case)), name))
        assert str(broken.value) == case["broken"]
        return
    chunks = list(file_format.read(io.BytesIO(content(case)), name))
    assert rows(chunks) == case["records"]
    assert [[reject.position, reject.reason] for chunk in chunks for reject in chunk.rejects] == case.get("rejects", [])
    unreadable = [[one.name, one.reason, one.rows and list(one.rows)] for one in chunks[-1].unreadable]
    assert unreadable == case.get("unreadable", [])
    facts = chunks[-1].facts
    assert {key: facts.get(key) for key in case.get("facts", {})} == case.get("facts", {})


def test_every_format_has_its_table() -> None:
    tables = {table.stem for table in TABLES.glob("*.yaml")}
    assert tables >= set(format_names())


def test_an_item_that_is_nested_too_deeply_is_rejected_alone() -> None:
    data = b'[{"a": %s}, {"a": 1}, {"a": 2}]' % (b"[" * 5_000 + b"]" * 5_000)
    chunks = list(resolve_format("a.json", None).read(io.BytesIO(data), "a.json"))
    assert [reject.reason for chunk in chunks for reject in chunk.rejects] == ["Item 1 is nested too deeply."]
    assert [row for chunk in chunks for row in chunk.records.rows()] == [("1",), ("2",)]


@pytest.mark.parametrize(("name", "label"), [("a.yaml", "YAML"), ("a.toml", "TOML")])
def test_a_document_that_is_nested_too_deeply_is_reported_in_one_sentence(name: str, label: str) -> None:
    data = (b"a = " if label == "TOML" else b"a: ") + b"[" * 5_000 + b"]" * 5_000
    with pytest.raises(SourceBroken, match=f"{name} can't be read as {label}: it is nested too deeply."):
        list(resolve_format(name, None).read(io.BytesIO(data), name))
