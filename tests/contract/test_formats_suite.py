"""The conformance suite of formats, for every format of the project."""

from __future__ import annotations

import io

import numpy as np
import openpyxl
import polars as pl
import pytest

from ingestd.sdk.formats import configured_format, format_names
from ingestd.sdk.testing import FormatConformance, FormatSample
from tests.support.measurement_files import hdf5, mat, mf4_file, tdms

FRAME = pl.DataFrame({"part": ["A", "B", "C"], "mass": ["1", "2", "3"]})
VALUES = np.array([1.0, 2.0, 3.0])
KNOWN = {"parquet", "arrow", "tdms", "hdf5", "mf4", "mat"}
"""The formats with files that say how many records they have."""


def workbook() -> bytes:
    book, out = openpyxl.Workbook(), io.BytesIO()
    for row in (FRAME.columns, *FRAME.rows()):
        book.worksheets[0].append(list(row))
    book.save(out)
    return out.getvalue()


def columnar(write: str) -> bytes:
    out = io.BytesIO()
    getattr(FRAME, write)(out)
    return out.getvalue()


REQIF = b"""<REQ-IF><CORE-CONTENT><REQ-IF-CONTENT><SPEC-TYPES/><SPEC-OBJECTS>
<SPEC-OBJECT IDENTIFIER="a"/><SPEC-OBJECT IDENTIFIER="b"/></SPEC-OBJECTS></REQ-IF-CONTENT></CORE-CONTENT></REQ-IF>"""

SAMPLES: dict[str, tuple[object, bytes, int]] = {
    "csv": ("csv", b"part,mass\nA,1\nB\nC,3\n", 3),
    "ndjson": ("ndjson", b'{"part": "A"}\nbad\n{"part": "C"}\n', 3),
    "json": ("json", b'[{"part": "A"}, 7, {"part": "C"}]', 3),
    "xml": ("xml", b"<r><p><a>1</a></p><p><a>2</a></p></r>", 2),
    "junit": ("junit", b'<testsuite name="s"><testcase name="a"/><testcase name="b"/></testsuite>', 2),
    "reqif": ("reqif", REQIF, 2),
    "fixed_width": (
        {
            "type": "fixed_width",
            "columns": [{"name": "part", "start": 1, "width": 1}, {"name": "mass", "start": 3, "width": 1}],
        },
        b"A 1\nB\nC 3\n",
        3,
    ),
    "text": ({"type": "text", "pattern": "(?P<part>[^ ]+) (?P<mass>.*)"}, b"A 1\nB\nC 3\n", 3),
    "yaml": ("yaml", b"part: A\nmass: 1\n", 1),
    "toml": ("toml", b'part = "A"\n', 1),
    "ini": ("ini", b"[a]\npart=A\n", 1),
    "excel": ("excel", workbook(), 3),
    "parquet": ("parquet", columnar("write_parquet"), 3),
    "arrow": ("arrow", columnar("write_ipc"), 3),
    "tdms": ("tdms", tdms({}, {}, [("Run", "v", VALUES, {}), ("Run", "w", VALUES, {})]), 2),
    "hdf5": ("hdf5", hdf5({}, {}, [("Run", "v", VALUES, {}), ("Run", "w", VALUES, {})]), 2),
    "mat": ("mat", mat({}, {}, [("Run", "v", VALUES, {}), ("Run", "w", VALUES, {})]), 2),
    "mf4": ("mf4", mf4_file({"Run": {"v": VALUES, "w": VALUES}}), 2),
}


class TestFormats(FormatConformance):
    @pytest.fixture(params=sorted(SAMPLES))
    def sample(self, request: pytest.FixtureRequest) -> FormatSample:
        setting, content, records = SAMPLES[request.param]
        return FormatSample(format=configured_format(setting), name="a", content=content, records=records)

    def test_the_formats_that_know_the_number_of_records_state_it(self, sample: FormatSample) -> None:
        assert (sample.read()[0].total is not None) == (sample.format.type in KNOWN)  # type: ignore[attr-defined]


def test_every_format_has_a_sample() -> None:
    assert set(SAMPLES) >= set(format_names())
