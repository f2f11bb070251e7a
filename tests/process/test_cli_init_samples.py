"""`ingestd init` on material as it is: what it writes for a sample, and that a plan of it rejects nothing."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from ruamel.yaml import YAML

from tests.support.daemon_process import here
from tests.support.document_server import DocumentServer

PARTS = [(f"T-{number}", f"{number},5", f"{number * 2},25") for number in range(1, 9)]
ROWS = "".join(";".join(part) + "\n" for part in PARTS)
ABOVE = "Prüfstand;A3\nPrüfer;Müller\n\n"


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[str, str]]:
    """The address of a service with a workspace Rover, and a key. The samples are all that differs."""
    with DocumentServer() as running:
        running.workspace("Rover")
        yield running.url, running.api_key


def workbook(path: Path) -> None:
    """A cover, and a table at C5 with a title above it, merged cells in two header rows, and notes beside it."""
    book = openpyxl.Workbook()
    cover = book.worksheets[0]
    cover.title = "Cover"
    cover["A1"], cover["A2"] = "Mass budget", "Issue 3"
    sheet = book.create_sheet("Masses")
    sheet["A1"], sheet["H5"] = "Mass budget of the rover", "checked by Ann"
    sheet["C3"], sheet["D3"] = "Rig", "north"
    sheet["C5"], sheet["D5"], sheet["F5"], sheet["D6"], sheet["E6"] = "Part", "Mass", "Owner", "min", "max"
    for cells in ("C5:C6", "D5:E5", "F5:F6"):
        sheet.merge_cells(cells)
    for row in range(7, 12):
        for column, value in enumerate((f"P-{row}", row * 1.5, row * 2, "Ann"), start=3):
            sheet.cell(row=row, column=column, value=value)
    book.save(path)


def text_of(content: str, encoding: str = "utf-8") -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(content, encoding=encoding, newline="")

    return write


NESTED_XML = (
    "<bom><Item number='R'><Item number='A'><mass>1.5</mass><Item number='B'><mass>0.10</mass></Item></Item>"
    "<Item number='C'><mass>2</mass><Item number='B'><mass>0.10</mass></Item></Item></Item></bom>"
)
NESTED_JSON = (
    '{"number": "R", "parts": [{"number": "A", "mass": 1.5, "parts": [{"number": "B", "mass": 0.10}]},'
    ' {"number": "C", "mass": 2, "parts": [{"number": "B", "mass": 0.10}]}]}'
)
JUNIT = (
    '<testsuites><testsuite name="s"><testcase classname="a.B" name="t1" time="0.5"/>'
    '<testcase classname="a.B" name="t2" time="0.1"><failure message="m">boom</failure></testcase></testsuite></testsuites>'
)
REQIF = (
    '<REQ-IF xmlns="http://www.omg.org/spec/ReqIF/20110401/reqif.xsd"><CORE-CONTENT><REQ-IF-CONTENT><SPEC-TYPES>'
    '<SPEC-OBJECT-TYPE IDENTIFIER="t" LONG-NAME="Requirement"><SPEC-ATTRIBUTES><ATTRIBUTE-DEFINITION-STRING'
    ' IDENTIFIER="a" LONG-NAME="Text"/></SPEC-ATTRIBUTES></SPEC-OBJECT-TYPE></SPEC-TYPES><SPEC-OBJECTS>'
    + "".join(
        f'<SPEC-OBJECT IDENTIFIER="{one}"><TYPE><SPEC-OBJECT-TYPE-REF>t</SPEC-OBJECT-TYPE-REF></TYPE><VALUES>'
        f'<ATTRIBUTE-VALUE-STRING THE-VALUE="Shall {one}"><DEFINITION><ATTRIBUTE-DEFINITION-STRING-REF>a'
        "</ATTRIBUTE-DEFINITION-STRING-REF></DEFINITION></ATTRIBUTE-VALUE-STRING></VALUES></SPEC-OBJECT>"
        for one in ("R-1", "R-2")
    )
    + "</SPEC-OBJECTS></REQ-IF-CONTENT></CORE-CONTENT></REQ-IF>"
)
SEMICOLON = {"type": "csv", "delimiter": ";"}

SAMPLES: Mapping[str, tuple[str, Callable[[Path], None], dict[str, object], str, str]] = {
    "a preamble and a unit row in Windows-1252": (
        "run.csv",
        text_of(f"{ABOVE}Teil;Masse;Länge\n;kg;mm\n{ROWS}", "windows-1252"),
        {**SEMICOLON, "header_row": 4, "units_row": True, "preamble": True, "encoding": "windows-1252"},
        "{Teil}.{column}",
        "16 created",
    ),
    "UTF-16 with tabs": (
        "run.txt",
        text_of("Part\tMass [kg]\nA\t1.5\nB\t2.50\n", "utf-16"),
        {"type": "csv", "delimiter": "\t"},
        "{Part}.{column}",
        "2 created",
    ),
    "two header rows and units": (
        "run.csv",
        text_of("Teil;Masse;\n;min;max\n;kg;kg\n" + ROWS),
        {**SEMICOLON, "header_row": 1, "header_rows": 2, "units_row": True},
        "{Teil}.{column}",
        "16 created",
    ),
    "equal names": (
        "run.csv",
        text_of("part,mass,mass\nA,1,2\nB,3,4\n"),
        {"type": "csv", "delimiter": ",", "repeated_columns": "number"},
        "{part}.{column}",
        "4 created",
    ),
    "decimal commas with an empty cell": (
        "run.csv", text_of("part;mass\nA;1,5\nB;\nC;2,5\n"), {}, "{part}.{column}", "2 created"
    ),
    "missing numbers": (
        "run.csv", text_of("part;mass;length\nA;1,5;2\nB;n/a;-\nC;-;\nD;2,5;3\n"), {}, "{part}.{column}", "4 created"
    ),
    "commas between thousands": (
        "run.csv", text_of("part;mass\nA;1,204.5\nB;0.5\n"), {}, "{part}.{column}", "2 created"
    ),
    "a plain table": ("run.csv", text_of("part,mass\nA,1\nB,2\n"), {}, "{part}.{column}", "2 created"),
    "a workbook with a cover, a title and merged cells": (
        "budget.xlsx",
        workbook,
        {"type": "excel", "sheet": "Masses", "area": "C:F", "header_row": 5, "header_rows": 2, "preamble": True},
        "{Part}.{column}",
        "10 created",
    ),
    "a report of tests": ("report.xml", text_of(JUNIT), {"type": "junit"}, "{classname}.{name}.{column}", "4 created"),
    "requirements": ("spec.xml", text_of(REQIF), {"type": "reqif"}, "{@IDENTIFIER}.{column}", "2 created"),
    "rows below several elements": (
        "report.xml",
        text_of("<r><meta/><rows><row id='a'><v>1</v></row><row id='b'><v>2</v></row></rows></r>"),
        {"type": "xml", "records": "rows/row"},
        "{@id}.{column}",
        "2 created",
    ),
    "a list in a document": (
        "report.json",
        text_of('{"at": "now", "results": {"rows": [{"id": "a", "v": 1}, {"id": "b", "v": 2}]}}'),
        {"type": "json", "records": "results.rows"},
        "{id}.{column}",
        "2 created",
    ),
    "a bill of materials in XML": (
        "bom.xml",
        text_of(NESTED_XML),
        {"type": "xml", "records": "**/Item", "id": "@number"},
        "{item.path}.{column}",
        "4 created",
    ),
    "a bill of materials in JSON": (
        "bom.json",
        text_of(NESTED_JSON),
        {"type": "json", "records": "**/*", "id": "number"},
        "{item.path}.{column}",
        "4 created",
    ),
    "an INI": ("bench.ini", text_of("[limits]\nmax = 5.5\nname = A\n"), {}, "{file.stem}.{column}", "2 created"),
}  # fmt: skip


def written(folder: Path) -> dict[str, Any]:
    pipeline = YAML(typ="safe").load((folder / "ingestd.yaml").read_text(encoding="utf-8"))["pipelines"][0]
    assert pipeline["guard"] == {"removed": 50}
    return dict(pipeline)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_understood_and_a_plan_of_it_rejects_nothing(
    tmp_path: Path, service: tuple[str, str], name: str
) -> None:
    url, key = service
    file, write, expected, template, created = SAMPLES[name]
    folder = tmp_path / "Bench 7"
    folder.mkdir()
    write(folder / file)
    done = here(tmp_path, "init", "--url", url, "--sample", f"Bench 7/{file}", INGESTD_API_KEY=key)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"records?, 0 rejected; entries: {created}", done.stdout), done.stdout
    pipeline = written(tmp_path)
    assert pipeline["source"].get("format", {}) == expected
    assert {one["key"] for one in pipeline["entries"]} == {template}
    assert (pipeline["name"], pipeline["sink"]) == ("bench-7", {"workspace": "Rover", "label": "bench-7"})
    assert "# canary: .mounted" in (tmp_path / "ingestd.yaml").read_text(encoding="utf-8")
    planned = here(tmp_path, "plan", INGESTD_API_KEY=key)
    assert f"would create {created.split()[0]}, change 0 and remove 0 entries, reject 0" in planned.stdout


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["2026-11-01T10:00:00 INFO mass=0.10 kg", "2026-11-01T10:00:00 INFO length=5 mm"],
            (False, "{time}.{name}.{column}", 2),
        ),
        (
            ["2026-11-01 10:00:00,1 [WARN] hot", "  at north", "2026-11-01 10:00:01,1 [INFO] cold"],
            (True, "{time}.{column}", 4),
        ),
    ],
)
def test_the_lines_of_a_log_have_a_pattern(
    tmp_path: Path, service: tuple[str, str], lines: list[str], expected: tuple[bool, str, int]
) -> None:
    (url, api_key), (multiline, key, created) = service, expected
    (tmp_path / "bench.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = here(tmp_path, "init", "--url", url, "--sample", "bench.log", INGESTD_API_KEY=api_key)
    assert (done.returncode, f"0 rejected; entries: {created} created" in done.stdout) == (0, True), (
        done.stdout + done.stderr
    )
    pipeline = written(tmp_path)
    assert (pipeline["source"]["format"]["type"], "multiline" in pipeline["source"]["format"]) == ("text", multiline)
    assert {one["key"] for one in pipeline["entries"]} == {key}


ASKED: Mapping[str, tuple[str, Callable[[Path], None], str, str]] = {
    "a preamble that may be the table": (
        "run.csv", text_of("Rig;north\nNo;12\npart;mass\nA;1,5\nB;2,5\nC;3,5\n"), "--header-row", "3"
    ),
    "no header": ("run.csv", text_of("P-1,0.10\nP-2,0.20\n"), "--header-row", "0"),
    "a guessed encoding": (
        "run.csv", text_of("część;masa\nśruba;1,5\nnakrętka;2,5\n", "windows-1250"), "--encoding", "windows-1252"
    ),
    "unknown units": ("run.csv", text_of("part;mass\n;lumps\nA;1\nB;2\nC;3\n"), "--units-row", "yes"),
    "a comma or a point": ("run.csv", text_of("part;mass\nA;1,250\nB;2,500\n"), "--decimal", ","),
    "commas and points": ("run.csv", text_of("part;mass\nA;1.250\nB;0.500\nC;2,750\n"), "--decimal", "."),
    "several lists": ("run.json", text_of('{"a": [{"id": "1", "v": 1}], "b": [{"id": "2", "v": 2}]}'), "--records", "a"),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_what_a_sample_does_not_prove_is_an_error_that_names_the_option_and_yes_takes_the_proposal(
    tmp_path: Path, service: tuple[str, str], name: str
) -> None:
    url, key = service
    file, write, option, proposal = ASKED[name]
    write(tmp_path / file)
    words = ("init", "--url", url, "--sample", file)
    asked = here(tmp_path, *words, INGESTD_API_KEY=key)
    assert asked.returncode == 2, asked.stdout + asked.stderr
    assert f"Name the right value with {option}, or accept '{proposal}' with --yes." in asked.stderr
    assert not (tmp_path / "ingestd.yaml").exists()
    done = here(tmp_path, *words, "--yes", INGESTD_API_KEY=key)
    assert (done.returncode, f"Taken: {proposal} (--yes)." in done.stderr) == (0, True), done.stdout + done.stderr
    assert " 0 rejected" in done.stdout
    given = (option,) if option == "--units-row" else (option, proposal)
    same = here(tmp_path, *words, "--output", "given.yaml", *given, INGESTD_API_KEY=key)
    assert same.returncode == 0, same.stderr
    first, second = ((tmp_path / one).read_text(encoding="utf-8") for one in ("ingestd.yaml", "given.yaml"))
    assert second == first.replace("var/ingestd.db", "var/given.db")


def test_wrong_letters_are_shown_and_the_named_encoding_is_written(tmp_path: Path, service: tuple[str, str]) -> None:
    url, key = service
    text_of("część;masa\nśruba;1,5\nnakrętka;2,5\n", "windows-1250")(tmp_path / "run.csv")
    words = ("init", "--url", url, "--sample", "run.csv")
    assert "is a guess by the letters in czêœæ, œruba, nakrêtka." in here(tmp_path, *words, INGESTD_API_KEY=key).stderr
    done = here(tmp_path, *words, "--encoding", "windows-1250", INGESTD_API_KEY=key)
    assert (done.returncode, "śruba.masa: 1.5" in done.stdout) == (0, True), done.stderr
    assert written(tmp_path)["source"]["format"]["encoding"] == "windows-1250"


def test_several_sheets_with_tables_are_asked_for(tmp_path: Path, service: tuple[str, str]) -> None:
    url, key = service
    book = openpyxl.Workbook()
    for sheet in (book.worksheets[0], book.create_sheet("Prices")):
        for row in (("part", "value"), ("A", 1), ("B", 2.5)):
            sheet.append(row)
    book.save(tmp_path / "book.xlsx")
    words = ("init", "--url", url, "--sample", "book.xlsx")
    asked = here(tmp_path, *words, INGESTD_API_KEY=key)
    assert (asked.returncode, "Several sheets have tables: Sheet, Prices." in asked.stderr) == (2, True), asked.stderr
    done = here(tmp_path, *words, "--sheet", "Prices", INGESTD_API_KEY=key)
    assert done.returncode == 0, done.stderr
    assert written(tmp_path)["source"]["format"] == {"type": "excel", "sheet": "Prices"}


def test_tables_beside_each_other_are_asked_for(tmp_path: Path, service: tuple[str, str]) -> None:
    url, key = service
    book = openpyxl.Workbook()
    for row in (("part", "mass", None, "item", "price"), ("A", 1, None, "X", 5), ("B", 2.5, None, "Y", 6)):
        book.worksheets[0].append(row)
    book.save(tmp_path / "book.xlsx")
    words = ("init", "--url", url, "--sample", "book.xlsx")
    asked = here(tmp_path, *words, INGESTD_API_KEY=key)
    assert (asked.returncode, "has several tables: A:B, D:E." in asked.stderr) == (2, True), asked.stderr
    done = here(tmp_path, *words, "--area", "D:E", INGESTD_API_KEY=key)
    assert done.returncode == 0, done.stderr
    assert written(tmp_path)["entries"] == [{"key": "{item}.{column}", "columns": ["price"]}]


def test_rejected_records_are_reported_and_have_an_exit_code(tmp_path: Path, service: tuple[str, str]) -> None:
    url, key = service
    (tmp_path / "run.csv").write_text("part,mass\nA,1\nB,2\nC,3\n,4\n", encoding="utf-8")
    done = here(tmp_path, "init", "--url", url, "--sample", "run.csv", "--key", "part", INGESTD_API_KEY=key)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "4 records, 1 rejected; entries: 3 created" in done.stdout
    assert "rejected run.csv, row 5: " in done.stdout
    assert "1 record of the sample would be rejected, with the reasons above." in done.stderr
    assert (tmp_path / "ingestd.yaml").exists()


def test_a_sample_of_which_most_records_would_be_rejected_writes_nothing(
    tmp_path: Path, service: tuple[str, str]
) -> None:
    url, key = service
    (tmp_path / "run.csv").write_text("part,mass\nA,1\n,2\n,3\n,4\n", encoding="utf-8")
    words = ("init", "--url", url, "--sample", "run.csv", "--key", "part")
    done = here(tmp_path, *words, INGESTD_API_KEY=key)
    assert (done.returncode, "3 of 4 records of the sample would be rejected. Nothing was written." in done.stderr) == (
        5,
        True,
    )
    assert not (tmp_path / "ingestd.yaml").exists()
    assert here(tmp_path, *words, "--yes", INGESTD_API_KEY=key).returncode == 3


def test_a_sample_of_which_all_records_are_rejected_is_not_called_empty(
    tmp_path: Path, service: tuple[str, str]
) -> None:
    url, key = service
    (tmp_path / "parts.ndjson").write_text('{\n"part": "A"\n}\n')
    done = here(tmp_path, "init", "--yes", "--url", url, "--sample", "parts.ndjson", INGESTD_API_KEY=key)
    assert done.returncode == 5
    assert (
        "parts.ndjson has no record that can be read. The first one was rejected: Line 1 is not valid JSON ("
        in done.stderr
    )


def test_the_primary_key_of_a_table_is_the_key_and_a_view_without_one_is_asked_for(
    tmp_path: Path, service: tuple[str, str]
) -> None:
    url, key = service
    with closing(sqlite3.connect(tmp_path / "pdm.db")) as database:
        database.execute(
            "CREATE TABLE part (state TEXT, revision TEXT, number TEXT, mass REAL, PRIMARY KEY (number, revision))"
        )
        rows = [("open", revision, number, 0.5) for number in ("P-1", "P-2") for revision in "AB"]
        database.executemany("INSERT INTO part VALUES (?, ?, ?, ?)", rows)
        database.execute("CREATE VIEW parts AS SELECT * FROM part")
        database.commit()
    words = ("init", "--url", url, "--database", "sqlite:///pdm.db", "--table")
    done = here(tmp_path, *words, "part", INGESTD_API_KEY=key)
    assert done.returncode == 0, done.stderr
    assert written(tmp_path)["entries"] == [{"key": "{number}.{revision}.{column}", "columns": ["mass"]}]
    assert "4 records, 0 rejected; entries: 4 created" in done.stdout
    asked = here(tmp_path, *words, "parts", "--output", "view.yaml", INGESTD_API_KEY=key)
    assert asked.returncode == 2
    assert "No column names a record alone; 'revision' and 'number' together do." in asked.stderr
    given = ("--key", "number", "--key", "revision", "--output", "view.yaml")
    assert here(tmp_path, *words, "parts", *given, INGESTD_API_KEY=key).returncode == 0
    assert '"{number}.{revision}.{column}"' in (tmp_path / "view.yaml").read_text(encoding="utf-8")


def test_a_sample_in_which_nothing_names_a_record_needs_a_key(tmp_path: Path, service: tuple[str, str]) -> None:
    url, key = service
    (tmp_path / "run.csv").write_text("kind,state,mass\na,b,1\na,b,1\n", encoding="utf-8")
    done = here(tmp_path, "init", "--yes", "--url", url, "--sample", "run.csv", INGESTD_API_KEY=key)
    assert (done.returncode, "Name the right value with --key." in done.stderr) == (2, True), done.stderr
