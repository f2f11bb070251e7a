"""Opening a workbook and choosing one of its sheets; bounded, since a small file can hold a very large one."""

from __future__ import annotations

import io
import zipfile
from typing import BinaryIO

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from ingestd.sdk import SourceBroken

FILE_BYTES = 256 * 2**20
UNPACKED_BYTES = 2 * 2**30


def read_workbook(file: BinaryIO, name: str) -> io.BytesIO:
    """The whole file in memory.

    Raises:
        SourceBroken: it, or what it unpacks to, is larger than a workbook may be.
    """
    data = file.read(FILE_BYTES + 1)
    if not data:
        raise SourceBroken(f"{name} is empty.")
    if len(data) > FILE_BYTES:
        raise SourceBroken(f"{name} is larger than {FILE_BYTES} bytes. Save the sheet as CSV or Parquet.")
    whole = io.BytesIO(data)
    if zipfile.is_zipfile(whole):
        with zipfile.ZipFile(whole) as archive:
            unpacked = sum(info.file_size for info in archive.infolist())
        if unpacked > UNPACKED_BYTES:
            raise SourceBroken(f"{name} holds more than {UNPACKED_BYTES} bytes once unpacked. Save the sheet as CSV.")
    whole.seek(0)
    return whole


def open_sheet(whole: io.BytesIO, name: str, wanted: str | int | None) -> CalamineSheet:
    """The sheet named, or numbered from 1, or else the first visible one that holds cells.

    Raises:
        SourceBroken: it is no workbook, needs a password, or has no such sheet.
    """
    try:
        book = CalamineWorkbook.from_filelike(whole)
        found = _chosen(book, wanted)
        if found is not None:
            return book.get_sheet_by_name(found)
        for data in book.sheets_metadata if wanted is None else ():
            if data.typ == SheetTypeEnum.WorkSheet and data.visible == SheetVisibleEnum.Visible:
                sheet = book.get_sheet_by_name(data.name)
                if sheet.height:
                    return sheet
    except PasswordError as error:
        raise SourceBroken(f"{name} needs a password. Save it without one.") from error
    except (CalamineError, OSError, ValueError) as error:
        raise SourceBroken(
            f"{name} can't be read as a workbook: {_one_line(error)}. Open it and save it again."
        ) from error
    if wanted is not None:
        names = ", ".join(repr(sheet) for sheet in book.sheet_names)
        raise SourceBroken(f"{name} has no sheet {wanted!r}; it has {names}.")
    raise SourceBroken(f"{name} has no visible sheet with cells.")


def _chosen(book: CalamineWorkbook, wanted: str | int | None) -> str | None:
    names = book.sheet_names
    if isinstance(wanted, int):
        return names[wanted - 1] if wanted <= len(names) else None
    return wanted if wanted in names else None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
