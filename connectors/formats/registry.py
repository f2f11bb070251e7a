"""The registry of formats: by configuration, else by the suffix of a file.

A new format is added here, in three places.
"""

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
"""Globs for every known suffix."""
_BY_NAME = {str(kind.model_fields["type"].default): kind for kind in FORMATS}


def resolve_format(name: str, configured: FormatName | Format | None, *, member: str = "*") -> Format:
    """Return the format of the file ``name``.

    ``member``: a glob of the members that are read of a zip file.

    Raises:
        SourceBroken: no format is configured, and the suffix of the name is not known.
    """
    if packed_suffix(name):
        return Packed(inner_format=lambda inner: resolve_format(inner, configured), member=member)
    if isinstance(configured, Format):
        return configured
    if configured is not None:
        return _BY_NAME[configured]()
    for suffix, kind in _SUFFIXES.items():
        if name.lower().endswith(suffix):
            return kind()
    raise SourceBroken(
        f"{name}: its suffix is none of {', '.join(_SUFFIXES)}. Set format to one of {', '.join(_BY_NAME)}."
    )
