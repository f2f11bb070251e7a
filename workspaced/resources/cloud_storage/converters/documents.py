"""Converter of PDF files to their text and an image of the first page."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pypdfium2  # type: ignore[import-untyped]
from pypdfium2 import PdfDocument, PdfiumError

from workspaced.resources.cloud_storage.converters.results import ConversionRefused, Outputs, Produced

PAGES: Final = 5_000
_SIDE = 1_024
_LARGEST_SCALE = 4.0


def convert(source: Path, into: Path) -> list[Produced]:
    """Make ``text.txt``, with form feeds between pages, and ``page-1.png``; see `Convert`."""
    outputs = Outputs(into)
    try:
        document = PdfDocument(source)
    except PdfiumError as error:
        if error.err_code == pypdfium2.raw.FPDF_ERR_PASSWORD:
            raise ConversionRefused("user", "The PDF is protected by a password: upload it without one.") from error
        raise ConversionRefused("user", f"The PDF can't be read: it is damaged, or not a PDF ({error}).") from error
    with document:
        if not len(document):
            raise ConversionRefused("user", "The PDF has no pages.")
        if len(document) > PAGES:
            raise ConversionRefused("unsupported", f"The PDF has {len(document)} pages; up to {PAGES} are converted.")
        try:
            _write_text(document, outputs)
            _draw_first_page(document, outputs)
        except PdfiumError as error:
            raise ConversionRefused("user", f"A page of the PDF can't be read ({error}).") from error
    return outputs.made


def _write_text(document: PdfDocument, outputs: Outputs) -> None:
    with outputs.place("text.txt", "text/plain; charset=utf-8").open("w", encoding="utf-8", newline="\n") as out:
        for number in range(len(document)):
            page = document[number]
            text = page.get_textpage().get_text_bounded(errors="replace").replace("\r\n", "\n")
            out.write(("\f" if number else "") + text)
            page.close()


def _draw_first_page(document: PdfDocument, outputs: Outputs) -> None:
    page = document[0]
    longest = max(*page.get_size(), 1.0)
    picture = page.render(scale=min(_SIDE / longest, _LARGEST_SCALE)).to_pil()
    picture.save(outputs.place("page-1.png", "image/png"), format="PNG")
