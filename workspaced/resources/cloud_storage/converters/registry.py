"""Which converter is for which file, by its name's ending and its media type. Pure, and light: nothing is imported for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One converter: its module below `workspaced.resources.cloud_storage.converters`, and what it is for."""

    module: str
    endings: frozenset[str]
    media_types: frozenset[str]


KINDS: Final = (
    Kind(
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
    Kind(
        module="delimited",
        endings=frozenset({"csv", "tsv"}),
        media_types=frozenset({"text/csv", "text/tab-separated-values"}),
    ),
    Kind(
        module="images",
        endings=frozenset({"png", "jpg", "jpeg", "gif", "bmp", "tif", "tiff", "webp"}),
        media_types=frozenset({"image/png", "image/jpeg", "image/gif", "image/bmp", "image/tiff", "image/webp"}),
    ),
    Kind(module="documents", endings=frozenset({"pdf"}), media_types=frozenset({"application/pdf"})),
)
_BY_ENDING: Mapping[str, Kind] = {ending: kind for kind in KINDS for ending in kind.endings}
_BY_MEDIA_TYPE: Mapping[str, Kind] = {media_type: kind for kind in KINDS for media_type in kind.media_types}


def kind_of(file_name: str, content_type: str) -> Kind | None:
    """The converter for a file, if there is one.

    The ending goes first: browsers on Windows call a CSV file application/vnd.ms-excel, and many senders say nothing.
    """
    ending = file_name.rpartition(".")[2].lower() if "." in file_name else ""
    media_type = content_type.partition(";")[0].strip().lower()
    return _BY_ENDING.get(ending) or _BY_MEDIA_TYPE.get(media_type)
