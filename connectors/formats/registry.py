"""The format of a file: as configured, else by the suffix of its name.

A new format needs a package or a module in this folder, an entry point in ``pyproject.toml`` and, if a suffix selects it, a
line here. The suffixes are listed here and not read from the classes, so that no format is imported before it is used. Formats
of other packages are selected by configuration only, because an installation must not change which files a folder reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

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
"""The formats that a folder reads only if its pattern or its format selects them. They may need an optional package, or a
folder may hold such files for other purposes."""

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

    ``member``: a glob for the members of a zip file that are read. ``among``: the possible formats; empty: all formats.

    Raises:
        SourceBroken: no format is configured, and the suffix of the name is not known.
    """
    if packed_suffix(name):
        of_reqif = "*.reqif" if name.lower().endswith(".reqifz") and member == "*" else member  # not the pictures in it
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


def format_settings(configured: str | Format | None, *, member: str = "*") -> dict[str, Any]:
    """Return the configured settings that decide which records a file yields (`ingestd.sdk.Connector.record_settings`).

    Raises:
        SourceUnavailable: the format can't be loaded, so its settings are unknown.
    """
    settings: dict[str, Any] = {} if member == "*" else {"member": member}
    if configured is None:
        return settings
    return {**settings, "format": configured_format(configured).configured_settings()}
