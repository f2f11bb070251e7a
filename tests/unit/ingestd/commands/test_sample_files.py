"""What `ingestd init` understands of a file, with the options and decisions of a person."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import openpyxl
import pytest

from ingestd.cli.plan import partition_lines
from ingestd.commands.initial_configuration.file_format import understand_file
from ingestd.commands.initial_configuration.file_sample import FileSample
from ingestd.commands.initial_configuration.findings import first_records, sentences
from ingestd.commands.sync_plan.values import PartitionPlan, PlannedChange
from ingestd.core.errors import SourceBroken


class Person(msgspec.Struct):
    """Gives options, and decides what is asked: as in ``decisions``, else as proposed.

    ``asked``: the options with their choices, in order. ``doubts``: why they were asked for.
    """

    options: dict[str, str] = {}
    decisions: dict[str, str] = {}
    asked: list[tuple[str, Sequence[str]]] = []
    doubts: list[str] = []

    def given(self, option: str) -> str | None:
        return self.options.get(option)

    def decide(self, option: str, doubt: str, proposal: str, /, *, choices: Sequence[str] = ()) -> str:
        if option in self.options:
            return self.options[option]
        self.asked.append((option, tuple(choices)))
        self.doubts.append(doubt)
        return self.decisions.get(option, proposal)


def understood(path: Path, content: bytes, **options: str) -> FileSample:
    path.write_bytes(content)
    return understand_file(path, Person(options={f"--{name}": value for name, value in options.items()}))


TABLE, LINES = "Teil;Maß\nTür;1,5\nÖl;2,5\n", "2026-11-01T10:00:00 INFO Öl=1 kg\n2026-11-01T10:00:01 INFO Tür=2 kg\n"
JSON, INI, YAML = '{"rows": [{"id": "Tür", "v": 1}, {"id": "Öl", "v": 2}]}', "[Maß]\nÖl = 1\n", "Öl: 1\n"
ENCODED = {
    "a.csv": (TABLE, "utf-16-le"),
    "b.csv": (f"Prüfer;Müller\n\n{TABLE}", "utf-16-be"),
    "c.txt": (LINES, "utf-16-le"),
    "d.log": (LINES, "utf-16-le"),
    "e.json": (JSON, "utf-16-le"),
    "f.ini": (INI, "cp850"),
    "g.yaml": (YAML, "utf-16-le"),
    "h.ndjson": ('{"id": "Tür"}\n{"id": "Öl"}\n', "cp850"),
}
"""Texts without a sign of their encoding."""


@pytest.mark.parametrize("name", ENCODED)
def test_a_given_encoding_is_that_of_the_whole_search_and_is_written(name: str, tmp_path: Path) -> None:
    text, encoding = ENCODED[name]
    found = understood(tmp_path / name, text.encode(encoding), encoding=encoding)
    same = understood(tmp_path / name, text.encode("utf-8-sig"))
    assert found.records.first.rows() == same.records.first.rows()
    assert found.records.first.columns == same.records.first.columns
    assert "Ö" in "".join((*found.records.first.columns, *map(str, found.records.first.rows())))
    assert (found.settings["encoding"], found.is_document) == (encoding, same.is_document)


@pytest.mark.parametrize("name", ["a.csv", "d.log", "e.json", "f.ini", "g.yaml"])
def test_a_guessed_encoding_is_written_for_each_text_format(name: str, tmp_path: Path) -> None:
    found = understood(tmp_path / name, ENCODED[name][0].encode("windows-1252"))
    assert found.settings["encoding"] == "windows-1252"


@pytest.mark.parametrize("name", ["a.xml", "a.xlsx"])
def test_an_encoding_for_a_file_that_states_its_own_is_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(SourceBroken, match=rf"^{name} is no text file of a known format, .* without --encoding\.$"):
        understood(tmp_path / name, b"<r/>", encoding="utf-8")


@pytest.mark.parametrize("encoding", ["klingon", "utf-32", "shift_jis"])
def test_an_xml_file_with_an_unusable_encoding_is_an_error(encoding: str, tmp_path: Path) -> None:
    with pytest.raises(SourceBroken, match=r"a\.xml is not well-formed XML: .*encoding"):
        understood(tmp_path / "a.xml", f'<?xml version="1.0" encoding="{encoding}"?><r><a/><a/></r>'.encode())


def test_the_sheet_is_asked_for_before_the_table_in_it(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for title in ("One", "Two", "Three"):
        sheet = book.create_sheet(title)
        for row in (("part", "mass", None, "item", "price"), ("A", 1, None, "X", 5), ("B", 2.5, None, "Y", 6)):
            sheet.append(row)
    del book["Sheet"]
    book["Three"].append(("C", 3.5, None, "Z", 7))
    book.save(tmp_path / "book.xlsx")
    person = Person(decisions={"--sheet": "Two", "--area": "D:E"})
    found = understand_file(tmp_path / "book.xlsx", person)
    assert person.asked == [("--sheet", ("One", "Two", "Three")), ("--area", ("A:B", "D:E"))]
    assert (found.settings["sheet"], found.settings["area"]) == ("Two", "D:E")
    assert found.records.first.rows() == [("X", "5"), ("Y", "6")]


def test_a_named_header_row_finds_the_table_of_a_sheet(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    rows = (("Annual production",), ("Plant", 2024, 2025), ("North", 10, 20), ("South", 11, 21), ("Source: ERP",))
    for row in rows:
        book.worksheets[0].append(row)
    book.save(tmp_path / "book.xlsx")
    with pytest.raises(SourceBroken, match=r"no sheet with a header .* or the header with --header-row\.$"):
        understand_file(tmp_path / "book.xlsx", Person())
    found = understand_file(tmp_path / "book.xlsx", Person(options={"--header-row": "2"}))
    assert found.records.first.columns == ["Plant", "2024", "2025"]


def test_units_that_are_not_known_are_confirmed_or_denied(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("part;mass\n;lumps\nA;1\nB;2\nC;3\n", encoding="ascii")
    person = Person(decisions={"--units-row": "no"})
    assert "units_row" not in understand_file(tmp_path / "a.csv", person).settings
    assert person.asked == [("--units-row", ("yes", "no"))]


REPORT = (
    "Bericht 4711\nPrüfer;Größmann\n\nLfd. Nr.;Uhrzeit;Moment;Temperatur\n;hh:mm:ss;N·m;°C\n"
    "1;08:01:00;1.203,5;81,5\n2;08:02:00;1.206,25;82,5\n3;08:03:00;1.209,5;83,5\nMittel;;1.206,4;\n"
)


def test_formats_of_times_are_units_and_common_signs_prove_the_western_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(REPORT, encoding="windows-1252")
    person = Person()
    found = understand_file(tmp_path / "a.csv", person)
    assert (person.asked, found.settings["units_row"], found.settings["header_row"]) == ([], True, 4)
    assert found.records.facts["units.Moment"] == "N·m"


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        (["rig3: start of run", "rig3: temperature=85.5", "rig3: end"], ["time", "level", "message"]),
        (["Öl = hot", "Öl: 80.5 °C", "speed=-3"], ["time", "level", "name", "value", "rest"]),
    ],
)
def test_a_word_before_a_colon_is_a_name_only_if_values_follow(
    lines: list[str], columns: list[str], tmp_path: Path
) -> None:
    text = "".join(f"2026-11-24 08:00:0{at} INFO {line}\n" for at, line in enumerate(lines))
    assert understood(tmp_path / "a.log", text.encode()).records.first.columns == columns


SECRET = "ftp://reader:planted-7351-planted-7351-planted-7351-planted-7351@rig/Å"
"""An address with a password, which no cut text may show half of."""


def test_a_secret_is_masked_before_a_text_is_cut(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"rig;{SECRET}\n\npart;mass\n{SECRET};1,5\nB;2,5\n", encoding="windows-1252")
    person = Person()
    sample = understand_file(tmp_path / "a.csv", person)
    shown = [*sentences("a.csv", sample), *first_records(sample.records.first), *person.doubts]
    assert "planted" not in "\n".join(shown)
    assert [line for line in shown if line.startswith("ftp://***@rig/Å")]
    assert person.doubts == ["The encoding windows-1252 is a guess by the letters in ftp://***@rig/Å."]


def test_a_plan_masks_a_secret_before_it_cuts_a_value() -> None:
    value = f"{'x' * 190} {SECRET}"
    change = PlannedChange(
        kind="created", key=value, old=None, old_type=None, new=value, new_type="text", position=None
    )  # fmt: skip
    planned = PartitionPlan(
        pipeline="p", partition="a.csv", sink="s", records=9, rejected=0, created=9, changed=0, retyped=0, removed=0, unchanged=0,
        held=(), failure="", notice="", changes=(change,), rejects=(), content="", effect="",
    )  # fmt: skip
    shown = "\n".join(partition_lines(planned, 1))
    assert "planted" not in shown
    assert "… 8 more changes; --rows N shows more" in shown
    assert "--rows" not in "\n".join(partition_lines(planned, 1, more=""))
