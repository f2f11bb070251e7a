"""Which format a file has: as configured, else by the end of its name. A new format is named here, three times."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from connectors.formats.columnar import Arrow, Parquet
from connectors.formats.compression import PACKED_SUFFIXES, Packed, packed_suffix
from connectors.formats.csv import Csv
from connectors.formats.documents import Ini, Toml, Yaml
from connectors.formats.excel import Excel
from connectors.formats.fixed_width import FixedWidth
from connectors.formats.format import Format
from connectors.formats.json import Json
from connectors.formats.ndjson import Ndjson
from connectors.formats.xml import Xml
from ingestd.sdk import SourceBroken

FormatName: TypeAlias = Literal["csv", "ndjson", "json", "yaml", "toml", "ini", "excel", "xml", "parquet", "arrow"]
ConfiguredFormat: TypeAlias = Annotated[
    Csv | Ndjson | Json | FixedWidth | Yaml | Toml | Ini | Excel | Xml | Parquet | Arrow, Field(discriminator="type")
]
FORMATS: tuple[type[Format], ...] = (Csv, Ndjson, Json, FixedWidth, Yaml, Toml, Ini, Excel, Xml, Parquet, Arrow)

_SUFFIXES = {suffix: kind for kind in FORMATS for suffix in kind.suffixes}
PATTERNS = (
    [f"*{suffix}" for suffix in _SUFFIXES]
    + [f"*{suffix}{packed}" for suffix in _SUFFIXES for packed in PACKED_SUFFIXES if packed != ".zip"]
    + ["*.zip"]
)
"""Globs of every name whose end is known."""
# Formats that are of no use without settings can't be chosen by name alone.
_BY_NAME = {str(kind.model_fields["type"].default): kind for kind in FORMATS}


def resolve_format(name: str, configured: FormatName | Format | None, *, member: str = "*") -> Format:
    """The format of the file ``name``; of a packed one, of what is inside. ``member``: which files of a zip.

    Raises:
        SourceBroken: nothing is configured and the name's end is not known.
    """
    if packed_suffix(name):
        return Packed(inside=lambda inner: resolve_format(inner, configured), member=member)
    if isinstance(configured, Format):
        return configured
    if configured is not None:
        return _BY_NAME[configured]()
    for suffix, kind in _SUFFIXES.items():
        if name.lower().endswith(suffix):
            return kind()
    raise SourceBroken(
        f"{name}: its name ends in none of {', '.join(_SUFFIXES)}. Set format to one of {', '.join(_BY_NAME)}."
    )
