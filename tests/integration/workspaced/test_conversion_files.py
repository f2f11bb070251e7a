"""Real files with the real converters, each in its own process: results of valid files, and failures of hostile ones."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import io
import json
import os
import struct
import sys
import threading
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pytest
from PIL import Image

from tests.support.conversion_processes import conversion_processes
from tests.support.convertible_files import ods, pdf, pdf_bomb, png_header, rows, xlsx, zipped
from tests.support.workbook_bytes import ods as libre_office
from tests.support.workbook_bytes import ods_cell, ods_row, xls
from workspaced.core.problems import UnavailableProblem
from workspaced.core.table_file import TableFile
from workspaced.resources.cloud_storage import child, job
from workspaced.resources.cloud_storage.converters.registry import converter_of
from workspaced.resources.cloud_storage.table_files import TableFiles
from workspaced.settings.workers import ConversionSettings
from workspaced.storage.blobs.file_threads import FileThreads
from workspaced.storage.blobs.received_bytes import IncomingFolder


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The results of a conversion by name."""

    files: dict[str, bytes]
    types: dict[str, str]

    def table(self, name: str) -> pl.DataFrame:
        return pl.read_parquet(io.BytesIO(self.files[name]))

    def json(self, name: str) -> Any:
        return json.loads(self.files[name])

    def image(self, name: str) -> Image.Image:
        return Image.open(io.BytesIO(self.files[name]))


async def _outcome(folder: Path, name: str, content: bytes, **limits: Any) -> tuple[child.Result, Path]:
    source = folder / "blob"
    source.write_bytes(content)
    scratch = folder / "scratch"
    scratch.mkdir()
    kind = converter_of(name, "application/octet-stream")
    assert kind
    return await job.run(
        kind, source, Path(name).suffix, scratch, settings=ConversionSettings(**limits)
    ), scratch / "made"


async def _made(folder: Path, name: str, content: bytes) -> Made:
    outcome, into = await _outcome(folder, name, content)
    assert outcome.error_class is None, outcome
    return Made(
        files={one.name: (into / one.file).read_bytes() for one in outcome.outputs},
        types={one.name: one.content_type for one in outcome.outputs},
    )


async def _failed(folder: Path, name: str, content: bytes, **limits: Any) -> tuple[str, str]:
    outcome, _ = await _outcome(folder, name, content, **limits)
    assert outcome.error_class, outcome
    return outcome.error_class, outcome.sentence


async def test_a_csv_column_is_typed_only_if_no_text_is_lost(tmp_path: Path) -> None:
    content = "part;count;price;length;day;done;note;empty\n" + "".join(
        f"{line}\n"
        for line in (
            "00417;12;1.5;1.50;2026-01-31;true;a;",
            "0042;-7;-0.25;2;2026-02-28;false;;",
            '9;0;1e3;3.0;1999-12-31;true;"b;\nc";',
        )
    )
    made = await _made(tmp_path, "parts.csv", content.encode())
    assert made.types == {"table.parquet": "application/vnd.apache.parquet", "preview.json": "application/json"}
    table = made.table("table.parquet")
    assert table.schema == {
        "part": pl.String,
        "count": pl.Int64,
        "price": pl.String,  # 1e3 would be written as 1000.0
        "length": pl.String,
        "day": pl.Date,
        "done": pl.Boolean,
        "note": pl.String,
        "empty": pl.String,
    }
    assert table.row(0) == ("00417", 12, "1.5", "1.50", date(2026, 1, 31), True, "a", None)
    assert table.row(2)[6] == "b;\nc"
    preview = made.json("preview.json")
    assert preview["rows"][0] == ["00417", 12, "1.5", "1.50", "2026-01-31", True, "a", None]
    assert [column["type"] for column in preview["columns"]][1:6] == ["integer", "text", "text", "date", "boolean"]
    assert (preview["rowCount"], preview["truncated"], preview["delimiter"]) == (3, False, ";")


async def test_a_preview_has_only_the_beginning(tmp_path: Path) -> None:
    content = "a,b\n" + "".join(f"{number},{'x' * 2_000}\n" for number in range(500))
    made = await _made(tmp_path, "long.csv", content.encode())
    assert made.table("table.parquet").height == 500
    preview = made.json("preview.json")
    assert (len(preview["rows"]), preview["rowCount"], preview["truncated"]) == (100, 500, True)
    assert len(preview["rows"][0][1]) == 1_001
    assert len(made.files["preview.json"]) < 200_000


@pytest.mark.parametrize(
    ("encoding", "reported"),
    [("utf-8", "utf-8"), ("utf-8-sig", "utf-8"), ("cp1252", "windows-1252"), ("utf-16", "utf-16")],
)
async def test_text_is_read_in_its_own_encoding(tmp_path: Path, encoding: str, reported: str) -> None:
    made = await _made(tmp_path, "a.tsv", "Größe\tWert\nä,b\t1\n".encode(encoding))
    assert made.table("table.parquet").to_dicts() == [{"Größe": "ä,b", "Wert": 1}]
    assert made.json("preview.json")["encoding"] == reported


async def test_a_table_without_a_header_has_letters_as_column_names(tmp_path: Path) -> None:
    made = await _made(tmp_path, "a.csv", b"1,2\n3,4\n")
    assert made.table("table.parquet").to_dicts() == [{"A": 1, "B": 2}, {"A": 3, "B": 4}]
    assert made.json("preview.json")["header"] is False


async def test_each_sheet_of_a_workbook_is_a_table(tmp_path: Path) -> None:
    # contract C6
    budget = rows(["part", "mass", "count", "ok", "mixed"], ["00417", 1.5, 2, True, "x"], ["0042", 0.1, 3, False, 4])
    dated = (
        '<row r="1"><c r="A1" s="1"><v>45000</v></c><c r="B1" s="2"><v>45000.5</v></c></row>'
        '<row r="2"><c r="A2" s="1"><v>45001</v></c><c r="B2" t="e"><v>#N/A</v></c></row>'
    )
    made = await _made(tmp_path, "budget.xlsx", xlsx({"Mass/Budget": budget, "Dates": dated, "Nothing": ""}))
    assert list(made.files) == ["Mass_Budget.parquet", "Mass_Budget.json", "Dates.parquet", "Dates.json"]
    table = made.table("Mass_Budget.parquet")
    assert table.schema == {
        "part": pl.String,
        "mass": pl.Float64,
        "count": pl.Int64,
        "ok": pl.Boolean,
        "mixed": pl.String,
    }
    assert table.rows() == [("00417", 1.5, 2, True, "x"), ("0042", 0.1, 3, False, "4")]
    assert made.json("Mass_Budget.json")["sheet"] == "Mass/Budget"
    assert made.table("Dates.parquet").rows() == [
        (date(2023, 3, 15), datetime.fromisoformat("2023-03-15T12:00")),
        (date(2023, 3, 16), None),
    ]


async def test_a_duration_in_a_workbook_is_hours_minutes_and_seconds(tmp_path: Path) -> None:
    book, content = openpyxl.Workbook(), io.BytesIO()
    sheet: Any = book.worksheets[0]
    for number, value in enumerate(("balance", 1.5, -0.25, 0.5 / 86400), start=1):
        sheet.cell(number, 1, value).number_format = "[h]:mm:ss"
    book.save(content)
    made = await _made(tmp_path, "hours.xlsx", content.getvalue())
    assert made.table("Sheet.parquet")["balance"].to_list() == ["36:00:00", "-06:00:00", "00:00:00.5"]


async def table_of(folder: Path, name: str, content: bytes) -> TableFile:
    threads = FileThreads(1)
    try:
        return await TableFiles(IncomingFolder(folder, threads), ConversionSettings()).read(name, content)
    finally:
        await threads.stop()


async def test_an_imported_error_or_formula_without_a_value_is_no_empty_cell(tmp_path: Path) -> None:
    cells = (
        '<c r="A1" t="e"><v>#N/A</v></c>',
        '<c t="e" r="A2"><f>B9()</f><v>#SPILL!</v></c>',
        '<c r="A3"><f>1+1</f><v/></c>',
        '<c r="A4" t="str"><f>LEFT("a",0)</f><v></v></c><c r="B4"><v>0.1</v></c>',
        '<c r="A5"><f>1+1</f><v>2</v></c>',
    )
    rows = "".join(f'<row r="{number}">{cell}</row>' for number, cell in enumerate(cells, start=1))
    table = await table_of(tmp_path, "a.xlsx", xlsx({"S": rows}))
    assert table.text == "#N/A\t\n#SPILL!\t\na formula without a saved value\t\n\t0.1\n2\t\n"
    error = ods_cell("#DIV/0!", 'office:value-type="string" office:string-value="" calcext:value-type="error"')
    table = await table_of(tmp_path, "a.ods", libre_office(ods_row(ods_cell("a"), error)))
    assert table.text == "a\t#DIV/0!\n"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.xls", xls([["a", b"\x2a"], ["b", (-0.25, "hh:mm")], ["c", (45000.0, "yyyy-mm-dd hh:mm")]]),
         "a\t#N/A\nb\t-06:00:00\nc\t2023-03-15T00:00:00\n"),
        ("a.ods", libre_office(ods_row(ods_cell("a"), ods_cell("00417", ""))), "a\t00417\n"),
    ],
)  # fmt: skip
async def test_an_import_reads_the_texts_that_a_pipeline_reads(
    tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    assert (await table_of(tmp_path, name, content)).text == expected
    if name == "a.ods":  # a text without a type is not lost by the conversion to Parquet, either
        made = await _made(tmp_path, name, content)
        assert made.table("S.parquet").rows() == [("a", "00417")]


async def test_an_import_reads_the_first_visible_sheet_with_cells(tmp_path: Path) -> None:
    book, content = openpyxl.Workbook(), io.BytesIO()
    lists: Any = book.worksheets[0]
    lists.title, lists.sheet_state = "Lists", "hidden"
    lists.append(["kg", "g"])
    book.create_sheet("Cover")
    book.create_sheet("Masses").append(["a", 1])
    book.save(content)
    table = await table_of(tmp_path, "masses.xlsx", content.getvalue())
    assert table == TableFile(text="a\t1\n", sheet="Masses", others=2)


async def test_an_import_without_disk_space_is_reported_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_path: Path, _content: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UnavailableProblem, match="The disk that holds files is full"):
        await table_of(tmp_path, "a.xlsx", xlsx({"S": ""}))
    assert list(await asyncio.to_thread(tmp_path.iterdir)) == []


async def test_an_open_document_is_converted_as_a_workbook(tmp_path: Path) -> None:
    def row(*cells: str) -> str:
        return f"<table:table-row>{''.join(cells)}</table:table-row>"

    def text(value: str) -> str:
        return f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'

    number = '<table:table-cell office:value-type="float" office:value="1.5"><text:p>1,5</text:p></table:table-cell>'
    content = ods(row(text("part"), text("mass")) + row(text("00417"), number))
    made = await _made(tmp_path, "budget.ods", content)
    assert made.table("Budget.parquet").to_dicts() == [{"part": "00417", "mass": 1.5}]


async def test_a_thumbnail_is_upright_and_has_no_camera_metadata(tmp_path: Path) -> None:
    picture = Image.new("RGB", (1_600, 800), "red")
    picture.paste("blue", (0, 0, 800, 800))
    about = picture.getexif()
    about[0x0112] = 6  # to be rotated by 90 degrees to the right
    about[0x010F] = "a camera's maker"
    content = io.BytesIO()
    picture.save(content, "JPEG", exif=about)
    made = await _made(tmp_path, "photo.JPG", content.getvalue())
    assert made.types == {"thumbnail.png": "image/png"}
    thumbnail = made.image("thumbnail.png")
    assert thumbnail.size == (256, 512)
    assert not thumbnail.getexif()
    assert b"camera" not in made.files["thumbnail.png"]
    top, bottom = thumbnail.getpixel((128, 10)), thumbnail.getpixel((128, 500))
    assert isinstance(top, tuple)
    assert isinstance(bottom, tuple)
    assert top[2] > 200 > top[0], "the left side is now at the top"
    assert bottom[0] > 200 > bottom[2]


async def test_transparency_is_kept_and_a_small_picture_is_not_enlarged(tmp_path: Path) -> None:
    # contract C6
    content = io.BytesIO()
    Image.new("RGBA", (20, 10), (255, 0, 0, 0)).save(content, "PNG")
    thumbnail = (await _made(tmp_path, "a.png", content.getvalue())).image("thumbnail.png")
    assert (thumbnail.size, thumbnail.mode) == ((20, 10), "RGBA")
    assert thumbnail.getpixel((0, 0)) == (255, 0, 0, 0)


async def test_a_pdf_gives_its_text_and_its_first_page(tmp_path: Path) -> None:
    # contract C6
    made = await _made(tmp_path, "report.pdf", pdf("Mass budget 42 kg", pages=2))
    assert made.files["text.txt"].decode() == "Mass budget 42 kg\fMass budget 42 kg"
    page = made.image("page-1.png").convert("L")
    assert page.size == (1_024, 683)
    darkest, lightest = page.getextrema()
    assert darkest == 0, "the page has text"
    assert lightest == 255


def _encrypted() -> bytes:
    """Return the beginning of an Office file with a password: no zip, but a compound file with this stream."""
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + "EncryptedPackage".encode("utf-16-le") + bytes(480)


def _encrypted_pdf() -> bytes:
    """Return a PDF that refers to a missing key."""
    return pdf("secret").replace(
        b"/Root 1 0 R",
        b"/Root 1 0 R /ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>] "
        b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <" + b"11" * 32 + b"> /U <" + b"22" * 32 + b"> >>",
    )


def _claiming(archive: bytes, member: str, size: int) -> bytes:
    """Return the archive with a directory that declares ``size`` bytes for a member."""
    changed = bytearray(archive)
    at = changed.rfind(member.encode()) - 46  # its entry in the directory at the end
    assert changed[at : at + 4] == b"PK\x01\x02"
    struct.pack_into("<I", changed, at + 24, size)
    return bytes(changed)


_FAR_CORNER = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'


@pytest.mark.parametrize(
    ("name", "content", "error_class", "words"),
    [
        pytest.param("a.xlsx", xlsx({"S": rows(["a"])})[:500], "user", "not a zip file", id="half a workbook"),
        pytest.param("a.xlsx", b"no workbook", "user", "does not begin like one", id="text called a workbook"),
        pytest.param("a.xlsx", _encrypted(), "user", "password", id="a workbook with a password"),
        pytest.param("a.xlsx", xlsx({"S": ""}), "user", "no sheet with cells", id="an empty workbook"),
        pytest.param("a.xlsx", zipped({"a.txt": "a"}), "user", "zip file without a workbook", id="another zip"),
        pytest.param(
            "a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "user", "only part of one", id="half an xls"
        ),
        pytest.param(
            "a.ods", zipped({"mimetype": "x"}), "user", "zip file without a workbook", id="another zip as ods"
        ),
        pytest.param(
            "a.xlsx",
            _claiming(zipped({"xl/a.xml": "a"}), "xl/a.xml", 600_000_000),
            "unsupported",
            "unpacks to 600000000",
            id="a zip bomb",
        ),
        pytest.param("a.xlsx", xlsx({"S": _FAR_CORNER}), "unsupported", "memory", id="a cell in the far corner"),
        pytest.param("a.png", png_header(60_000, 60_000), "unsupported", "60000 x 60000 pixels", id="an image bomb"),
        pytest.param("a.png", png_header(5_000, 5_000), "user", "damaged", id="an image of nothing"),
        pytest.param("a.jpg", b"\xff\xd8\xff\xe0 no more", "user", "image", id="half an image"),
        pytest.param("a.png", b"<svg/>", "user", "not an image", id="text called an image"),
        pytest.param("a.pdf", pdf("text")[:60], "user", "damaged", id="half a pdf"),
        pytest.param("a.pdf", b"", "user", "not a PDF", id="an empty pdf"),
        pytest.param("a.pdf", _encrypted_pdf(), "user", "password", id="a pdf with a password"),
        pytest.param("a.csv", b"", "user", "empty", id="an empty csv"),
        pytest.param("a.csv", b"a,b\n1,2,3\n", "user", "more fields", id="a ragged csv"),
        pytest.param("a.csv", b"a,\0\n", "user", "zero bytes", id="no text"),
        pytest.param("a.csv", b"a,\x81\n", "user", "neither UTF-8", id="text in nothing known"),
        pytest.param("a.csv", b"," * 3_000 + b"\n", "unsupported", "3001 columns", id="too many columns"),
    ],
)
async def test_a_hostile_file_is_rejected_with_a_message(
    tmp_path: Path, name: str, content: bytes, error_class: str, words: str
) -> None:
    found, sentence = await _failed(tmp_path, name, content, seconds=60)
    assert found == error_class, sentence
    assert words in sentence
    assert sentence.endswith(".")


async def test_a_zip_with_a_false_size_reaches_the_memory_limit(tmp_path: Path) -> None:
    text = f"<t>{'x' * 150_000_000}</t>"
    honest = xlsx({"S": f'<row r="1"><c r="A1" t="inlineStr"><is>{text}</is></c></row>'})
    false_size = _claiming(honest, "xl/worksheets/sheet1.xml", 1_000)
    error_class, _ = await _failed(tmp_path, "a.xlsx", false_size, memory_bytes=300_000_000, seconds=60)
    assert error_class in {"user", "unsupported"}


async def test_a_pdf_bomb_is_rejected_permanently(tmp_path: Path) -> None:
    content = pdf_bomb(600)
    assert len(content) < 20_000
    error_class, sentence = await _failed(tmp_path, "a.pdf", content, memory_bytes=268_435_456, seconds=60)
    assert error_class == "unsupported", sentence
    assert "256 MiB" in sentence


async def test_the_size_of_results_is_bounded(tmp_path: Path) -> None:
    content = b"a,b\n" + b"".join(os.urandom(8).hex().encode() + b",x\n" for _ in range(30_000))
    error_class, sentence = await _failed(tmp_path, "a.csv", content, output_bytes=100_000)
    assert (error_class, sentence) == ("unsupported", "The outputs of the conversion have more than 100000 bytes.")


async def test_processor_time_is_bounded(tmp_path: Path) -> None:
    content = b"a,b\n" + b"1.5,xyz\n" * 15_000_000
    error_class, sentence = await _failed(tmp_path, "a.csv", content, cpu_seconds=1)
    assert error_class == "timeout"
    assert "1 seconds of processor time" in sentence


def _environments() -> list[bytes]:
    return [Path(f"/proc/{child}/environ").read_bytes() for child in conversion_processes()]


async def test_a_cancelled_conversion_leaves_no_process_and_its_process_gets_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKSPACED_ENCRYPTION_KEY", "a secret")
    task = asyncio.create_task(_outcome(tmp_path, "a.csv", b"a,b\n" + b"1.5,xyz\n" * 4_000_000))
    async with asyncio.timeout(60):
        while b"POLARS_MAX_THREADS" not in (reported := b"".join(_environments())):  # noqa: ASYNC110  no signal for a start
            await asyncio.sleep(0.01)
    assert b"a secret" not in reported
    begun = conversion_processes()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not begun & conversion_processes()


@pytest.mark.parametrize(("module", "library"), [("images", "PIL"), ("documents", "pypdfium2"), ("documents", "PIL")])
def test_without_the_extra_of_previews_a_sentence_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, library: str
) -> None:
    source = tmp_path / "blob"
    source.write_bytes(pdf("One page") if module == "documents" else b"")
    monkeypatch.delitem(sys.modules, f"workspaced.resources.cloud_storage.converters.{module}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    order = child.Order(
        module=module, source=str(source), into=str(tmp_path), memory_bytes=1, cpu_seconds=1, output_bytes=1, parent=1
    )
    result = child._result(order)
    assert result.error_class == "unsupported"
    assert "without previews of images and PDF files" in result.sentence
    assert "pip install 'workspaced[previews]'" in result.sentence


async def test_a_folder_that_does_not_respond_delays_only_the_conversion(tmp_path: Path) -> None:
    begun = _begin_in_a_folder_that_does_not_respond(tmp_path)
    responds = threading.Timer(5, _open_reader, [tmp_path / "scratch/stderr"])
    responds.start()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(begun), 0.5)
    assert responds.is_alive(), "the event loop waited for the folder"
    responds.cancel()
    _open_reader(tmp_path / "scratch/stderr")
    assert (await begun).error_class is None


async def test_a_conversion_that_is_cancelled_while_its_files_are_opened_closes_them(tmp_path: Path) -> None:
    begun = _begin_in_a_folder_that_does_not_respond(tmp_path)
    await asyncio.sleep(0)
    begun.cancel()
    await asyncio.sleep(0)
    assert not begun.done(), "the folder could be deleted while a thread works in it"
    reader = await asyncio.to_thread((tmp_path / "scratch/stderr").open, "rb", buffering=0)  # waits for the writer
    with reader:
        with pytest.raises(asyncio.CancelledError):
            await begun
        os.set_blocking(reader.fileno(), False)
        assert reader.read() == b"", "the file is still open"


def _begin_in_a_folder_that_does_not_respond(folder: Path) -> asyncio.Task[child.Result]:
    (folder / "scratch").mkdir()
    os.mkfifo(folder / "scratch/stderr")  # opening it waits for a reader, as for a share that does not respond
    source = folder / "blob"
    source.write_bytes(b"part,mass\nA,1\n")
    kind = converter_of("a.csv", "text/csv")
    assert kind
    return asyncio.create_task(job.run(kind, source, ".csv", folder / "scratch", settings=ConversionSettings()))


def _open_reader(path: Path) -> None:
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
