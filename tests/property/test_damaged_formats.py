"""Damaged files of every text format and packing: each is read or rejected with a sentence, whatever its bytes are.

``INGESTD_MUTATIONS=20000`` makes that number of files of each sample; the suite makes few. A failure names its seed.
"""

import bz2
import gzip
import io
import lzma
import os
import random
import zipfile
from collections.abc import Mapping

import pytest

from connectors.formats.documents import Ini, Toml, Yaml
from connectors.formats.fixed_width import FixedWidth
from connectors.formats.json import Json
from connectors.formats.junit import JUnit
from connectors.formats.text_lines import TextLines
from connectors.formats.xml import Xml
from connectors.formats.zstandard import zstd
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats import Format
from tests.support.format_records import read_named

MUTATIONS = int(os.environ.get("INGESTD_MUTATIONS", "75"))

CSV = 'part,mass,note\nA,0.10,"a ""b"""\n\nB,1e-7,"two\nlines"\nC;,,\xe9\n'.encode()
NDJSON = b'{"n": 1, "t": "a:b", "o": {"p": [1, {"q": null}]}}\n{"n": -0, "b": true}\n\n{"n": 2.50}\n'
YAML = b"%YAML 1.2\n---\na: &x [1, 'two', {b: 0x1F}]\nc: *x\nd: |\n  text\n? e\n: !!str 2026-01-01\nf: {g: ~, h: \"\\x41\"}\n"
TOML = (
    b'title = "a"\ndate = 2026-01-01T10:00:00Z\nn = 1_000\nx = 0xff\nf = 1e-7\n[a.b]\nc = [1, 2, {d = """e\nf"""}]\n'
    b"[[t]]\nv = 'w'\n[[t]]\nv = 10:00:00.5\n"
)
INI = b"first = 1\n[a]\nname = value\n  more\n\n  lines\n; comment\npath : C:\\x\nalone\n[b c]\nx=y=z\n"
XML = b"<?xml version='1.0' encoding='utf-8'?><r xmlns:a='urn:a'><x a:k='1'>t<y/><y>2</y><![CDATA[c]]></x><x>&lt;&#65;</x></r>"
JUNIT = (
    b"<testsuites><testsuite name='s'><properties><property name='p' value='1'/></properties>"
    b"<testcase classname='c' name='n' time='0.1'><failure message='m'>x</failure></testcase><testcase name='o'/></testsuite>"
    b"</testsuites>"
)
REQIF = (
    b"<REQ-IF><CORE-CONTENT><REQ-IF-CONTENT><SPEC-TYPES><SPEC-OBJECT-TYPE IDENTIFIER='t' LONG-NAME='T'><SPEC-ATTRIBUTES>"
    b"<ATTRIBUTE-DEFINITION-STRING IDENTIFIER='a' LONG-NAME='ID'/></SPEC-ATTRIBUTES></SPEC-OBJECT-TYPE></SPEC-TYPES>"
    b"<SPEC-OBJECTS>"
    b"<SPEC-OBJECT IDENTIFIER='r'><TYPE><SPEC-OBJECT-TYPE-REF>t</SPEC-OBJECT-TYPE-REF></TYPE><VALUES><ATTRIBUTE-VALUE-STRING"
    b" THE-VALUE='1'><DEFINITION><ATTRIBUTE-DEFINITION-STRING-REF>a</ATTRIBUTE-DEFINITION-STRING-REF></DEFINITION>"
    b"</ATTRIBUTE-VALUE-STRING></VALUES></SPEC-OBJECT></SPEC-OBJECTS></REQ-IF-CONTENT></CORE-CONTENT></REQ-IF>"
)


TEXT = TextLines(pattern=r"(?P<time>\S+) (?P<text>.*)", multiline=r"^\S")
FIXED_WIDTH = FixedWidth.model_validate(
    {"columns": [{"name": "p", "start": 1, "width": 8}, {"name": "m", "start": 9, "width": 4}]}
)


def zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data)
    return out.getvalue()


SAMPLES: Mapping[str, tuple[str, bytes, Format | None]] = {
    "csv": ("a.csv", CSV, None),
    "csv in UTF-16": ("a.csv", CSV.decode().encode("utf-16"), None),
    "ndjson": ("a.ndjson", NDJSON, None),
    "json": ("a.json", b"[" + b",".join(line for line in NDJSON.splitlines() if line) + b"]", None),
    "json with a path": (
        "a.json",
        b'{"x": [1], "d": {"rows": [{"n": 1}, {"n": 2}], "y": "]"}}',
        Json(records="d.rows"),
    ),
    "yaml": ("a.yaml", YAML, Yaml()),
    "toml": ("a.toml", TOML, Toml()),
    "ini": ("a.ini", INI, Ini()),
    "xml": ("a.xml", XML, None),
    "junit": ("a.xml", JUNIT, JUnit()),
    "reqif": ("a.reqif", REQIF, None),
    "nested XML": ("a.xml", XML, Xml(records="**/*", id="@k")),
    "nested JSON": ("a.json", b'{"n": 1, "p": [{"n": "2", "p": {"n": 3}}, {"n": 4}]}', Json(records="**/p", id="n")),
    "text": ("a.log", b"t1 a\n  at x\n\nt2 b\n", TEXT),
    "fixed width": ("a.txt", b"part    mass\nA       0.10\nB       2\n\n", FIXED_WIDTH),
    "gz": ("a.csv.gz", gzip.compress(CSV * 20, mtime=0), None),
    "bz2": ("a.csv.bz2", bz2.compress(CSV * 20), None),
    "xz": ("a.csv.xz", lzma.compress(CSV * 20), None),
    "zst": ("a.csv.zst", zstd.compress(CSV * 20), None),
    "zip": ("a.zip", zipped(("a.csv", CSV * 20), ("b/c.json", b'[{"n": 1}]')), None),
    "zip without compression": ("a.zip", zipped(("a.csv", CSV), method=zipfile.ZIP_STORED), None),
    "zip of bz2": ("a.zip", zipped(("a.csv", CSV), method=zipfile.ZIP_BZIP2), None),
    "zip of lzma": ("a.zip", zipped(("a.csv", CSV), method=zipfile.ZIP_LZMA), None),
}

TOKENS = [
    *(bytes([mark]) for mark in b"\0\xff\n\r\t\"'\\[]{}<>&*!%#;:=,.-?|\x1a\x85"), b"", b"\xef\xbb\xbf", b"\xff\xfe", b" " * 9,
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"\\ud800", b"\\u0000", b"9" * 5000, b"0x" + b"f" * 5000, b"1e999999", b"-0", b"NaN",
    b"!!int x", b"!!binary x", b"!!python/object:x", b"<<: *x", b"&x ", b"%YAML 1.3\n", b"%TAG ! x\n", b"2026-13-99", b"99:99:99",
    b"[table]", b"[[t]]", b"[a]\n  b\n    c", b"\xed\xa0\x80", b"\xe2\x80\xa8",
]  # fmt: skip


def damaged(data: bytes, generator: random.Random) -> bytes:
    """Return the data with one to four changes: replaced, removed, repeated or moved bytes, and tokens of the formats."""
    found = bytearray(data)
    for _ in range(generator.randint(1, 4)):
        at = generator.randrange(len(found) + 1)
        end = min(len(found), at + generator.choice([0, 1, 1, 2, 4, 16, len(found)]))
        match generator.randrange(6):
            case 0:
                found[at:end] = generator.choice(TOKENS)
            case 1:
                found[at:end] = bytes(generator.randrange(256) for _ in range(end - at))
            case 2:
                found[at:at] = found[at:end]
            case 3:
                del found[at:end]
            case 4:
                piece = found[at:end]
                del found[at:end]
                place = generator.randrange(len(found) + 1)
                found[place:place] = piece
            case _:
                found[at:at] = generator.choice(TOKENS) * generator.choice([1, 2, 300])
    return bytes(found)


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_damaged_file_is_read_or_rejected_with_a_sentence(kind: str) -> None:
    name, data, file_format = SAMPLES[kind]
    assert read_named(name, data, file_format)
    for seed in range(MUTATIONS):
        content = damaged(data, random.Random(f"{kind} {seed}"))
        try:
            for chunk in read_named(name, content, file_format):
                assert chunk.records.height == chunk.positions.len()
        except SourceBroken as error:
            assert str(error).startswith((name, "a.", "b/c.json")), f"seed {seed}: {error}"  # noqa: PT017 - few are rejected
        except Exception as error:
            raise AssertionError(f"seed {seed} of {kind}: {error!r} for {content[:2000]!r}") from error
