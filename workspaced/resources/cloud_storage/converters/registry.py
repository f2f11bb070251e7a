"""The converters, by file name endings and media types. Performs no I/O, and imports no converter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Converter:
    """A converter: its module in this package, and the endings and media types of its files."""

    module: str
    endings: frozenset[str]
    media_types: frozenset[str]


CONVERTERS: Final = (
    Converter(
        module="spreadsheets",
        endings=frozenset({"xlsx", "xlsm", "xls", "ods"}),
        media_types=frozenset(
            {
                "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
                "application/vnd.ms-excel.sheet.macroenabled.12",
                "application/vnd.ms-excel",
                "application/vnd.oasis.opendocument.spreadsheet",
            }
        ),
    ),
    Converter(
        module="delimited",
        endings=frozenset({"csv", "tsv"}),
        media_types=frozenset({"text/csv", "text/tab-separated-values"}),
    ),
    Converter(
        module="images",
        endings=frozenset({"png", "jpg", "jpeg", "gif", "bmp", "tif", "tiff", "webp"}),
        media_types=frozenset({"image/png", "image/jpeg", "image/gif", "image/bmp", "image/tiff", "image/webp"}),
    ),
    Converter(module="documents", endings=frozenset({"pdf"}), media_types=frozenset({"application/pdf"})),
)
_BY_ENDING: Mapping[str, Converter] = {ending: kind for kind in CONVERTERS for ending in kind.endings}
_BY_MEDIA_TYPE: Mapping[str, Converter] = {media_type: kind for kind in CONVERTERS for media_type in kind.media_types}


def converter_of(file_name: str, content_type: str) -> Converter | None:
    """Return the converter of a file, if there is one.

    The ending has precedence, because browsers on Windows send application/vnd.ms-excel for CSV files, and many clients send no
    type.
    """
    ending = file_name.rpartition(".")[2].lower() if "." in file_name else ""
    media_type = content_type.partition(";")[0].strip().lower()
    return _BY_ENDING.get(ending) or _BY_MEDIA_TYPE.get(media_type)
