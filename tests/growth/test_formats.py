"""The work of each text format at N and at 4 N, in each dimension of its files.

Processor time is compared, because the work is done in C as well. Only quadratic work fails: 16 times as much.
"""

import gc
import io
import time
from collections.abc import Callable

import pytest

from connectors.formats import resolve_format
from connectors.formats.fixed_width import FixedWidth
from connectors.formats.json import Json
from connectors.formats.text_lines import TextLines
from connectors.formats.xml import Xml
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats import Format

GROWTH = 10
"""The largest permitted growth when a file is four times as large, which leaves room for a busy machine."""
NEGLIGIBLE = 0.25
"""Seconds of processor time that are never a fault."""
N = 5_000

NESTED_XML = Xml(records="**/I", id="@n")
NESTED_JSON = Json(records="**/p", id="n")
FIXED = FixedWidth.model_validate({"columns": [{"name": "a", "start": 1, "width": 2}]})

Case = tuple[str, Callable[[int], str], Format | None]

CASES: dict[str, Case] = {
    "csv: columns": ("a.csv", lambda n: ",".join(f"c{at}" for at in range(n)) + "\n" + "1," * (n - 1) + "1\n", None),
    "csv: columns without names": ("a.csv", lambda n: "," * n + "\n" + "," * n + "\n", None),
    "csv: length of a name": ("a.csv", lambda n: "a" * 20 * n + ",b\n1,2\n", None),
    "csv: quotes": ("a.csv", lambda n: 'a,b\n"' + '""' * 10 * n + '",1\n', None),
    "csv: open quotes": ("a.csv", lambda n: "a,b\n" + '"' * (10 * n + 1), None),
    "csv: blank rows": ("a.csv", lambda n: "a,b\n" + "\n" * 10 * n, None),
    "csv: marks": ("a.csv", lambda n: "a,b\n" + "\ufeff1,2\n" * n, None),
    "ndjson: names": ("a.ndjson", lambda n: "{" + ",".join(f'"k{at}":1' for at in range(n // 4)) + "}\n", None),
    "ndjson: length of a name": ("a.ndjson", lambda n: '{"' + "k" * 20 * n + '":1}\n', None),
    "ndjson: repeated names": ("a.ndjson", lambda n: "{" + ",".join(['"k":1'] * n) + "}\n", None),
    "ndjson: colons": ("a.ndjson", lambda n: '{"k":"' + '\\":' * 5 * n + '"}\n', None),
    "ndjson: depth": ("a.ndjson", lambda n: '{"k":' * n + "1" + "}" * n + "\n", None),
    "ndjson: depth of an array": ("a.ndjson", lambda n: '{"k":' + "[" * n + "]" * n + "}\n", None),
    "ndjson: names in depth": ("a.ndjson", lambda n: ('{"k":' * 90 + "1" + "}" * 90 + "\n") * (n // 50), None),
    "ndjson: fields below a long name": (
        "a.ndjson",
        lambda n: '{"' + "k" * 20 * n + '":{' + ",".join(f'"k{at}":1' for at in range(n // 10)) + "}}\n",
        None,
    ),
    "json: items": ("a.json", lambda n: "[" + ",".join(['{"k":{"l":"}]"}}'] * n) + "]", None),
    "json: depth": ("a.json", lambda n: "[" * n + "]" * n, None),
    "json: depth of objects": ("a.json", lambda n: '{"k":' * n + "1" + "}" * n, None),
    "yaml: names": ("a.yaml", lambda n: "".join(f"k{at}: 1\n" for at in range(n // 20)), None),
    "yaml: length of a name": ("a.yaml", lambda n: "k" * 20 * n + ": 1\n", None),
    "yaml: brackets": ("a.yaml", lambda n: "[" * n, None),
    "yaml: braces": ("a.yaml", lambda n: "{k: " * n, None),
    "yaml: lines of brackets": ("a.yaml", lambda n: "[\n" * n, None),
    "yaml: lines of 100 brackets": ("a.yaml", lambda n: "a:\n" + ("  " + "[" * 100 + "\n") * (n // 1000), None),
    "yaml: items": ("a.yaml", lambda n: "- " * n, None),
    "yaml: depth": ("a.yaml", lambda n: "\n".join(" " * at + "k:" for at in range(n // 5)), None),
    "yaml: anchors": (
        "a.yaml",
        lambda n: "".join(f"k{at}: &a{at} [*a{max(0, at - 1)}]\n" for at in range(1, n // 20)),
        None,
    ),
    "yaml: blanks": ("a.yaml", lambda n: "a: b" + " " * 10 * n + "c\n", None),
    "toml: names": ("a.toml", lambda n: "".join(f"k{at} = 1\n" for at in range(n // 4)), None),
    "toml: length of a name": ("a.toml", lambda n: "k" * 20 * n + " = 1\n", None),
    "toml: parts of a name": ("a.toml", lambda n: "k." * n + "k = 1\n", None),
    "toml: parts of a quoted name": ("a.toml", lambda n: "'k' . " * n + "k = 1\n", None),
    "toml: parts of a table": ("a.toml", lambda n: "[" + "k." * n + "k]\na = 1\n", None),
    "toml: tables": ("a.toml", lambda n: "".join(f"[k.k{at}]\na = 1\n" for at in range(n // 4)), None),
    "toml: fields below a long name": (
        "a.toml",
        lambda n: "[" + "k" * 20 * n + "]\n" + "".join(f"k{at} = 1\n" for at in range(n // 10)),
        None,
    ),
    "toml: depth": ("a.toml", lambda n: "k = " + "[" * n + "]" * n + "\n", None),
    "toml: text": ("a.toml", lambda n: "k = '" + "a.b " * 5 * n + "'\n", None),
    "toml: quotes": ("a.toml", lambda n: 'k = "' + '\\"' * 5 * n + '"\n', None),
    "toml: digits": ("a.toml", lambda n: "k = " + "1" * 10 * n + "\n", None),
    "ini: names": ("a.ini", lambda n: "".join(f"k{at} = 1\n" for at in range(n // 4)), None),
    "ini: length of a name": ("a.ini", lambda n: "k" * 20 * n + " = 1\n", None),
    "ini: blanks": ("a.ini", lambda n: "k" + " " * 20 * n + "x\n", None),
    "ini: colons": ("a.ini", lambda n: "k" + ":" * 20 * n + "=x\n", None),
    "ini: lines of a value": ("a.ini", lambda n: "k = 1\n" + "  x\n\n" * n, None),
    "ini: brackets": ("a.ini", lambda n: "[" * 20 * n + "]\nk = 1\n", None),
    "xml: depth": ("a.xml", lambda n: "<a>" * n + "</a>" * n, None),
    "xml: children": (
        "a.xml",
        lambda n: "<r><a>" + "".join(f"<k{at}>1</k{at}>" for at in range(n // 4)) + "</a></r>",
        None,
    ),
    "xml: equal children": ("a.xml", lambda n: "<r><a>" + "<k>1</k>" * n + "</a></r>", None),
    "xml: attributes": ("a.xml", lambda n: "<r><a " + "".join(f"k{at}='1' " for at in range(n // 4)) + "/></r>", None),
    "xml: length of a name": ("a.xml", lambda n: f"<r><{'k' * 5 * n}/></r>", None),
    "xml: children below a long name": (
        "a.xml",
        lambda n: (
            f"<r><a><{'k' * 20 * n}>" + "".join(f"<k{at}/>" for at in range(n // 10)) + f"</{'k' * 20 * n}></a></r>"
        ),
        None,
    ),
    "xml: attributes below a long name": (
        "a.xml",
        lambda n: f"<r><a><{'k' * 20 * n} " + "".join(f"k{at}='' " for at in range(n // 10)) + "/></a></r>",
        None,
    ),
    "reqif: depth": ("a.reqif", lambda n: "<REQ-IF>" + "<a>" * n, None),
    "reqif: attributes of one name": (
        "a.reqif",
        lambda n: (
            "<REQ-IF><SPEC-TYPES><SPEC-OBJECT-TYPE IDENTIFIER='t'>"
            + "".join(f"<ATTRIBUTE-DEFINITION-STRING IDENTIFIER='a{at}' LONG-NAME='N'/>" for at in range(n))
            + "</SPEC-OBJECT-TYPE></SPEC-TYPES></REQ-IF>"
        ),
        None,
    ),
    "reqif: values of one name": (
        "a.reqif",
        lambda n: (
            "<REQ-IF><SPEC-TYPES><SPEC-OBJECT-TYPE IDENTIFIER='t'><ATTRIBUTE-DEFINITION-STRING IDENTIFIER='a'/>"
            "</SPEC-OBJECT-TYPE></SPEC-TYPES><SPEC-OBJECTS><SPEC-OBJECT><VALUES>"
            + "<ATTRIBUTE-VALUE-STRING THE-VALUE='1'><DEFINITION><R>a</R></DEFINITION></ATTRIBUTE-VALUE-STRING>"
            * (n // 4)
            + "</VALUES></SPEC-OBJECT></SPEC-OBJECTS></REQ-IF>"
        ),
        None,
    ),
    "nested xml: depth": (
        "a.xml",
        lambda n: "<r>" + ("<I n='1'>" * 45 + "</I>" * 45) * (n // 200) + "</r>",
        NESTED_XML,
    ),
    "nested xml: records in one": ("a.xml", lambda n: "<I n='1'>" + "<I n='2'><m>1</m></I>" * n + "</I>", NESTED_XML),
    "nested xml: text around records": (
        "a.xml",
        lambda n: f"<I n='1'><t>{'x' * 20 * n}</t>" + "<I n='2'/>" * n + "</I>",
        NESTED_XML,
    ),
    "nested xml: text between records": ("a.xml", lambda n: "<I>" + ("<I/>" + "x" * 200) * n + "</I>", NESTED_XML),
    "nested xml: names": (
        "a.xml",
        lambda n: "<r>" + "".join(f"<I n='1'><k{at}/></I>" for at in range(n // 2)) + "</r>",
        NESTED_XML,
    ),
    "nested json: depth": ("a.json", lambda n: '{"n":1,"p":[' * n + "]}" * n, NESTED_JSON),
    "nested json: records in one": ("a.json", lambda n: '{"n":1,"p":[' + ",".join(['{"n":2}'] * n) + "]}", NESTED_JSON),
    "nested json: depth of other objects": (
        "a.json",
        lambda n: '{"k":' * 500 + f'"{"x" * 20 * n}"' + "}" * 500,
        NESTED_JSON,
    ),
    "nested json: text around records": (
        "a.json",
        lambda n: f'{{"n":1,"t":"{"x" * 20 * n}","p":[' + ",".join(['{"n":2}'] * n) + "]}",
        NESTED_JSON,
    ),
    "json: names beside a path": (
        "a.json",
        lambda n: "{" + ",".join(f'"k{at}":1' for at in range(n)) + "}",
        Json(records="rows"),
    ),
    "xml: names beside a path": (
        "a.xml",
        lambda n: "<r>" + "".join(f"<k{at}/>" for at in range(n)) + "</r>",
        Xml(records="a"),
    ),
    "text: length of a line": ("a.log", lambda n: "a" * 50 * n + "b\n", TextLines(pattern="(?P<a>(a+)+)$")),
    "text: lines": ("a.log", lambda n: "a\nb\n" * n, TextLines(pattern="(?P<a>(a+)+)$", multiline="^a")),
    "text: lines of a record": (
        "a.log",
        lambda n: "a\n" + "b\n" * 10 * n,
        TextLines(pattern="(?P<a>(.|\n)*)*b", multiline="^a"),
    ),
    "fixed width: length of a line": ("a.txt", lambda n: "a" * 50 * n + "\n", FIXED),
    "fixed width: lines": ("a.txt", lambda n: "\ufeffab\n" * n, FIXED),
}


def seconds(case: Case, size: int) -> float:
    name, make, file_format = case
    data = make(size).encode()
    gc.disable()  # its work depends on the objects of all other tests, too
    started = time.process_time()
    try:
        for chunk in resolve_format(name, file_format).read(io.BytesIO(data), name):
            assert chunk.records.height == chunk.positions.len()
    except SourceBroken:
        pass  # most of these files are none
    finally:
        gc.enable()
    return time.process_time() - started


@pytest.mark.parametrize("kind", CASES)
def test_the_work_of_a_text_format_grows_with_the_size_of_the_file_only(kind: str) -> None:
    large = seconds(CASES[kind], 4 * N)
    if large > NEGLIGIBLE:
        small = max(seconds(CASES[kind], N), NEGLIGIBLE / GROWTH)
        large = min(large, seconds(CASES[kind], 4 * N))
        assert large <= GROWTH * small
