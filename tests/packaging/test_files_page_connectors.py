"""The page about files names every option of the connectors `log` and `file`, and its examples can be loaded."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from pydantic import BaseModel
from ruamel.yaml import YAML

from connectors.file import FileOptions
from connectors.log import LogOptions

PAGE = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
LOG = PAGE.partition("## Files that only grow")[2].partition("\n## ")[0]
FILE = PAGE.partition("## One file that people keep open")[2].partition("\n## ")[0]


@pytest.mark.parametrize(("name", "section", "options"), [("log", LOG, LogOptions), ("file", FILE, FileOptions)])
def test_every_option_is_named_and_the_example_can_be_loaded(name: str, section: str, options: type[BaseModel]) -> None:
    assert [option for option in options.model_fields if f"`{option}`" not in section] == []
    (example,) = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    settings = YAML(typ="safe", pure=True).load(io.StringIO(example))
    assert settings.pop("connector") == name
    assert options.model_validate(settings).model_fields_set == set(settings)
