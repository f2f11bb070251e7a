"""The text of a table file that a user chooses for an import. The file is not stored."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Final

from workspaced.core.problems import Invalid
from workspaced.core.table_file import TableFile
from workspaced.resources.cloud_storage import job
from workspaced.resources.cloud_storage.converters.registry import CONVERTERS, Converter
from workspaced.settings.workers import ConversionSettings
from workspaced.storage.blobs.file_threads import disk_problems
from workspaced.storage.blobs.received_bytes import IncomingFolder

_SHEETS: Final = next(one for one in CONVERTERS if one.module == "spreadsheets")
_SHEET_TEXT: Final = Converter(module="sheet_text", endings=_SHEETS.endings, media_types=frozenset())
_SECONDS: Final = 30
_OUTPUT_BYTES: Final = 4_194_304
_ENCODINGS: Final = ("utf-8-sig", "windows-1252")
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")


class TableFiles:
    """Reads table files, one workbook at a time. A process with the limits of a conversion, but less time, reads a workbook."""

    def __init__(self, incoming: IncomingFolder, settings: ConversionSettings) -> None:
        """``incoming``: the folder for the bytes of a workbook while the workbook is read."""
        self._incoming = incoming
        self._turn = asyncio.Semaphore(1)
        self._settings = dataclasses.replace(
            settings,
            seconds=min(settings.seconds, _SECONDS),
            cpu_seconds=min(settings.cpu_seconds, _SECONDS),
            output_bytes=min(settings.output_bytes, _OUTPUT_BYTES),
        )

    async def read(self, name: str, content: bytes) -> TableFile:
        """Return the text of a table: a decoded CSV file, or the first sheet of a workbook, separated by tabs.

        Raises:
            Invalid: the content is neither text nor a readable workbook.
            UnavailableProblem: the disk is full or fails.
        """
        ending = Path(name).suffix.lower()
        if ending.removeprefix(".") not in _SHEET_TEXT.endings:
            return TableFile(text=_decoded(content))
        async with self._turn, self._incoming.scratch() as folder:
            with disk_problems():
                source = folder / "workbook"
                await asyncio.to_thread(source.write_bytes, content)
                outcome = await job.run(_SHEET_TEXT, source, ending, folder, settings=self._settings)
            if outcome.error_class:
                raise Invalid("bad_table", outcome.sentence)
            text, sheets = [
                await asyncio.to_thread((folder / "made" / one.file).read_text, encoding="utf-8")
                for one in outcome.outputs
            ]
            sheet, *others = sheets.split("\n")
            return TableFile(text=text, sheet=sheet, others=len(others))


def _decoded(content: bytes) -> str:
    if b"\0" in content and not content.startswith(_UTF16):
        raise Invalid("bad_table", "The file is not text: it has zero bytes. Choose a CSV file or a workbook.")
    for encoding in ("utf-16",) if content.startswith(_UTF16) else _ENCODINGS:
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise Invalid("bad_table", "The file is text in neither UTF-8, UTF-16 nor Windows-1252. Save it as CSV in UTF-8.")
