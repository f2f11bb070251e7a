"""The format of a file: as configured, else by the suffix of its name.

A new format has a package or a module beside this one, an entry point in ``pyproject.toml``, and a line here if a suffix
selects it. The suffixes are listed here and not read from the classes, so that no format is imported before it is used.
Installing another package must not change which files a folder reads, so its formats are selected by configuration only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from connectors.formats.compression import PACKED_SUFFIXES, Packed, packed_suffix
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats import Format, configured_format, format_names

_TABLES: Mapping[str, tuple[str, ...]] = {
    "csv": (".csv", ".tsv", ".tab"),
    "ndjson": (".ndjson", ".jsonl"),
    "json": (".json",),
    "yaml": (".yaml", ".yml"),
    "toml": (".toml",),
    "ini": (".ini", ".cfg"),
    "excel": (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
    "xml": (".xml",),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
}
"""The formats that a folder reads if no pattern is set."""
_OTHERS: Mapping[str, tuple[str, ...]] = {
    "tdms": (".tdms",),
    "hdf5": (".h5", ".hdf5", ".hdf"),
    "reqif": (".reqif", ".reqifz"),
    "mat": (".mat",),
    "mf4": (".mf4",),
}
"""The formats that a folder reads only if its pattern or its format selects them. They may need an extra, or their files may be
beside other files."""

SUFFIXES: Mapping[str, str] = {
    suffix: name for names in (_TABLES, _OTHERS) for name, suffixes in names.items() for suffix in suffixes
}
"""The names of formats by suffix."""


def globs_of(suffixes: Iterable[str]) -> tuple[str, ...]:
    """Return the globs of names with these suffixes, also of packed files."""
    suffixes = tuple(suffixes)
    return (
        *(f"*{suffix}" for suffix in suffixes),
        *(f"*{suffix}{packed}" for suffix in suffixes for packed in PACKED_SUFFIXES if packed != ".zip"),
    )


PATTERNS = [*globs_of(suffix for suffixes in _TABLES.values() for suffix in suffixes), "*.zip"]
"""Globs for every suffix that a folder reads by default."""


def resolve_format(
    name: str, configured: str | Format | None, *, member: str = "*", among: Collection[type[Format]] = ()
) -> Format:
    """Return the format of the file ``name``.

    ``member``: a glob of the members that are read of a zip file. ``among``: the possible formats; empty: all formats.

    Raises:
        SourceBroken: no format is configured, and the suffix of the name is not known.
    """
    if packed_suffix(name):
        of_reqif = "*.reqif" if name.lower().endswith(".reqifz") and member == "*" else member  # beside pictures
        return Packed(inner_format=lambda inner: resolve_format(inner, configured), member=of_reqif)
    if configured is not None:
        return configured_format(configured)
    possible = {str(kind.model_fields["type"].default) for kind in among}
    suffixes = [suffix for suffix, kind in SUFFIXES.items() if not possible or kind in possible]
    for suffix in suffixes:
        if name.lower().endswith(suffix):
            return configured_format(SUFFIXES[suffix])
    names = sorted(possible) or format_names()
    raise SourceBroken(
        f"{name}: its suffix must be one of {', '.join(suffixes)}. Set format to one of {', '.join(names)}."
    )
