"""Options that former releases accepted still load, with each connector of this distribution."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ingestd.registry import connector_class
from ingestd.sdk.testing import check_released_options

RECORDED = Path(__file__).parents[1] / "golden" / "options"
"""A file for each connector. The examples of 0.1.0 were checked with the code of that release when they were recorded."""
UNRELEASED = "unreleased"
"""The examples of the present options. `make release` records them for its version."""
OURS = ("database", "directory", "file", "http", "log", "mqtt", "opcua", "push", "remote")


@pytest.mark.parametrize("name", OURS)
def test_options_of_former_releases_still_load(name: str) -> None:
    check_released_options(connector_class(name), RECORDED / f"{name}.json")


@pytest.mark.parametrize("name", OURS)
def test_the_examples_of_the_next_release_have_every_option(name: str) -> None:
    """An option without an example could be removed unnoticed."""
    examples = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))[UNRELEASED]
    missing = set(connector_class(name).Options.model_fields).difference(*examples)
    assert not missing, f"Add examples of {sorted(missing)} to tests/golden/options/{name}.json."


def test_connectors_of_the_first_release_have_examples_of_it() -> None:
    recorded = {
        path.stem for path in RECORDED.glob("*.json") if "0.1.0" in json.loads(path.read_text(encoding="utf-8"))
    }
    assert recorded == {"database", "directory", "file", "log"}
