"""Workbooks: detection of their kind from their content, and the choice of a sheet."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from typing import BinaryIO, Literal, TypeAlias

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError
from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from ingestd.workbooks.binary_workbook import read_xlsb_details
from ingestd.workbooks.details import CellDetails, WorkbookDamaged
from ingestd.workbooks.legacy_workbook import read_xls_details
from ingestd.workbooks.open_document import read_ods_details
from ingestd.workbooks.open_xml import OpcPackage, read_xlsx_details
from ingestd.workbooks.repair import repair_ods, repair_xlsx
from ingestd.workbooks.zip_end import check_single_zip


class WorkbookUnreadable(Exception):
    """The file is not a workbook that can be read. The message is a sentence, with the name of the file."""


Kind: TypeAlias = Literal["xls", "xlsx", "xlsb", "ods"]

FILE_BYTES = 256 * 2**20
UNPACKED_BYTES = 2 * 2**30
"""Limits of workbooks, which are read into memory."""

_COMPOUND_FILE = bytes.fromhex("d0cf11e0a1b11ae1")
_ZIP = b"PK\x03\x04"
_BIFF = (b"\x09\x00", b"\x09\x02", b"\x09\x04", b"\x09\x08")
"""The beginnings of xls files from before 1997."""
_MARKUP = (b"<html", b"<table", b"<!doctype html", b"<?xml", b"mime-version", b"\xef\xbb\xbf<")
_HEAD_BYTES = 1024
_SAVE_AGAIN = "Open it and save it again."


def read_workbook(file: BinaryIO, name: str) -> io.BytesIO:
    """Read the whole file into memory.

    Raises:
        WorkbookUnreadable: the file is empty, or larger than the limit for a workbook.
    """
    data = file.read(FILE_BYTES + 1)
    if not data:
        raise WorkbookUnreadable(f"{name} is empty.")
    if len(data) > FILE_BYTES:
        raise WorkbookUnreadable(f"{name} is larger than {FILE_BYTES} bytes. Save the sheet as CSV or Parquet.")
    return io.BytesIO(data)


def detect_kind(whole: io.BytesIO, name: str) -> Kind:
    """Return the kind of a workbook by its content, because a file named .xls may be a zip file (xlsx).

    Raises:
        WorkbookUnreadable: the file is no workbook, needs a password, or exceeds the limit after it is unpacked.
    """
    data = whole.getbuffer()
    head = bytes(data[:_HEAD_BYTES])
    if head.startswith(_COMPOUND_FILE):
        return _kind_of_compound_file(whole, name)
    if head.startswith(_ZIP):
        return _kind_of_zip(whole, name)
    if head.startswith(_BIFF):
        return "xls"
    if head.lstrip().lower().startswith(_MARKUP):
        raise WorkbookUnreadable(f"{name} is no workbook but HTML or XML. Open it and save it as .xlsx or CSV.")
    raise WorkbookUnreadable(
        f"{name} can't be read as a workbook: it does not begin like one (rename a CSV file to .csv). {_SAVE_AGAIN}"
    )


def _kind_of_compound_file(whole: io.BytesIO, name: str) -> Kind:
    data = whole.getvalue()
    if not any(_directory_entry(stream) in data for stream in ("Workbook", "Book", "WORKBOOK", "BOOK")):
        if _directory_entry("EncryptedPackage") in data:
            raise _needs_password(name)
        raise WorkbookUnreadable(
            f"{name} holds no workbook: a document of another program, or only part of one. {_SAVE_AGAIN}"
        )
    return "xls"


def _directory_entry(stream: str) -> bytes:
    """Return the name of a stream as a compound file stores it."""
    return f"{stream}\0".encode("utf-16-le")


def _kind_of_zip(whole: io.BytesIO, name: str) -> Kind:
    try:
        with zipfile.ZipFile(whole) as archive:
            check_single_zip(whole, archive)
            unpacked = sum(info.file_size for info in archive.infolist())
            package = OpcPackage(archive)
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise _unreadable(name, error) from error
    if unpacked > UNPACKED_BYTES:
        raise WorkbookUnreadable(f"{name} holds more than {UNPACKED_BYTES} bytes once unpacked. Save the sheet as CSV.")
    if "xl/workbook.bin" in package:
        return "xlsb"
    if "[Content_Types].xml" in package:
        return "xlsx"
    if "content.xml" in package:
        return "ods"
    raise WorkbookUnreadable(f"{name} is a zip file without a workbook. If it holds other files, rename it to .zip.")


def open_sheet(
    whole: io.BytesIO, kind: Kind, name: str, wanted: str | int | None
) -> tuple[CalamineSheet, Sequence[str]]:
    """Return a sheet by name or by number from 1 (None: the first visible sheet with cells), and the names of all worksheets.

    Raises:
        WorkbookUnreadable: the file is no workbook, needs a password, or has no such sheet.
    """
    try:
        try:
            return _find_sheet(open_book(whole, kind, name), name, wanted)
        except CalamineError:
            if kind != "xlsx" or (repaired := repair_xlsx(whole)) is None:
                raise
            return _find_sheet(open_book(repaired, kind, name), name, wanted)
    except (CalamineError, WorkbookDamaged, ParseError, KeyError, OSError, ValueError, zipfile.BadZipFile) as error:
        if "password" in str(error).lower() or "encrypted" in str(error).lower():
            raise _needs_password(name) from error
        raise _unreadable(name, error) from error


def open_book(whole: io.BytesIO, kind: Kind, name: str) -> CalamineWorkbook:
    """Open a workbook, in ods with texts that calamine does not read from the original file.

    Raises:
        WorkbookUnreadable: the file needs a password.
        CalamineError: the file can't be read.
    """
    book = (repair_ods(whole) if kind == "ods" else None) or whole
    book.seek(0)
    try:
        return CalamineWorkbook.from_filelike(book)
    except PasswordError as error:
        raise _needs_password(name) from error


def _find_sheet(book: CalamineWorkbook, name: str, wanted: str | int | None) -> tuple[CalamineSheet, Sequence[str]]:
    worksheets = [sheet for sheet in book.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    names = [sheet.name for sheet in worksheets]
    found = _choose_sheet(book, wanted)
    if found is not None:
        return book.get_sheet_by_name(found), names
    for data in worksheets if wanted is None else ():
        if data.visible == SheetVisibleEnum.Visible:
            sheet = book.get_sheet_by_name(data.name)
            if sheet.height:
                return sheet, names
    if wanted is not None:
        listed = ", ".join(repr(sheet) for sheet in book.sheet_names)
        raise WorkbookUnreadable(f"{name} has no sheet {wanted!r}; it has {listed}.")
    raise WorkbookUnreadable(f"{name} has no visible sheet with cells.")


def read_details(whole: io.BytesIO, kind: Kind, name: str, sheet: str) -> CellDetails:
    """Return the details of the sheet's cells that calamine does not report.

    Raises:
        WorkbookUnreadable: the workbook is damaged, or its XML is malicious.
    """
    whole.seek(0)
    try:
        if kind == "xls":
            return read_xls_details(whole.getvalue(), sheet)
        with zipfile.ZipFile(whole) as archive:
            return {"xlsx": read_xlsx_details, "xlsb": read_xlsb_details, "ods": read_ods_details}[kind](archive, sheet)
    except DefusedXmlException as error:
        raise WorkbookUnreadable(
            f"{name} can't be read as a workbook: its XML declares entities, which are not allowed."
        ) from error
    except (WorkbookDamaged, ParseError, KeyError, RecursionError, ValueError, zipfile.BadZipFile) as error:
        raise _unreadable(name, error) from error


def _choose_sheet(book: CalamineWorkbook, wanted: str | int | None) -> str | None:
    names = book.sheet_names
    if isinstance(wanted, int):
        return names[wanted - 1] if wanted <= len(names) else None
    return wanted if wanted in names else None


def _needs_password(name: str) -> WorkbookUnreadable:
    return WorkbookUnreadable(f"{name} needs a password. Save it without a password.")


def _unreadable(name: str, error: Exception) -> WorkbookUnreadable:
    reason = " ".join(str(error).split()) or type(error).__name__
    return WorkbookUnreadable(f"{name} can't be read as a workbook: {reason}. {_SAVE_AGAIN}")
