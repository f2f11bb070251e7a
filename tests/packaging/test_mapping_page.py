"""The page on mappings: its examples give what it shows, and it names every setting and function."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from ingestd.core.errors import SourceBroken
from ingestd.core.mapping.compiler import FUNCTIONS
from ingestd.core.record import Reject
from ingestd.settings.entries import ColumnChoice, EntrySettings, LookupSettings
from ingestd.settings.entry_values import DateSettings, PadSettings, UnitSettings, ValueSettings
from ingestd.settings.group import AggregateSettings, GroupSettings
from ingestd.settings.shape import known_keys
from tests.support.mapped_files import map_files

PAGE = (Path(__file__).parents[2] / "docs" / "mapping.md").read_text(encoding="utf-8")
FILES = re.compile(r"```(?:csv|json) (\S+)\n(.*?)```\n", re.DOTALL)
EXAMPLES = re.findall(r"```yaml\n([^`]*)```\n\n((?:```(?:csv|json) \S+\n[^`]*```\n\n)+)```text\n([^`]*)```", PAGE)
"""The entries, the files and the output of each example. The last file is the source, the other files belong to lookups."""


def row_of(reject: Reject) -> str:
    return f"row {reject.position}" if isinstance(reject.position, int) else reject.position


@pytest.mark.parametrize(("entries", "files", "output"), EXAMPLES)
def test_an_example_gives_the_output_that_the_page_shows(tmp_path: Path, entries: str, files: str, output: str) -> None:
    file_format = re.match(r"# format: (.*)\n", entries)
    *tables, (name, content) = FILES.findall(files)
    given: dict[str, Any] = {"file_format": file_format[1] if file_format else "{type: csv}", "tables": dict(tables)}
    if output.startswith(rejected := f"{name} is rejected: "):
        with pytest.raises(SourceBroken, match=f"^{re.escape(output.removeprefix(rejected).rstrip())}$"):
            map_files(tmp_path, entries, {name: content}, **given)
        return
    found = map_files(tmp_path, entries, {name: content}, **given)
    lines = [f"{key} = {value}" + (f" ({kind})" if kind != "scalar" else "") for key, value, kind in found.entries]
    lines += [f"{row_of(reject)} rejected: {reject.reason}" for reject in found.rejects]
    assert lines == output.splitlines()


def test_every_block_of_the_page_belongs_to_an_example() -> None:
    assert len(EXAMPLES) >= 5
    assert PAGE.count("```yaml") == PAGE.count("```text") == len(EXAMPLES)
    assert PAGE.count("```csv") + PAGE.count("```json") == sum(len(FILES.findall(files)) for _, files, _ in EXAMPLES)


def test_every_setting_and_function_is_on_the_page() -> None:
    models: list[type[BaseModel]] = [
        EntrySettings,
        ColumnChoice,
        LookupSettings,
        ValueSettings,
        UnitSettings,
        DateSettings,
        PadSettings,
        GroupSettings,
        AggregateSettings,
    ]
    settings = {name for model in models for name in known_keys(model)}
    assert {name for name in settings if not re.search(rf"`[^`\n]*\b{name}\b", PAGE)} == set()
    assert {name for name in FUNCTIONS if f"`{name}`" not in PAGE} == set()
