"""The pages on HTTP services and remote folders name each kind of page or address, and each bound with its default."""

from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from connectors.http import HttpOptions
from connectors.http.options import PageKind
from connectors.remote import RemoteOptions
from connectors.remote.address import Scheme
from ingestd.registry import connector_names

BOUNDS = {
    "http": {"max_pages": "1000", "max_bytes": "1 GiB", "timeout_seconds": "30"},
    "remote": {"max_files": "200000", "max_bytes": "16 GiB", "timeout_seconds": "30", "poll_seconds": "60"},
}


@pytest.mark.parametrize(
    ("page", "options", "kinds", "end"),
    [("http", HttpOptions, PageKind, "` |"), ("remote", RemoteOptions, Scheme, "://")],
)
def test_every_kind_and_every_bound_is_described(page: str, options: type[BaseModel], kinds: Any, end: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert {kind for kind in get_args(kinds) if f"\n| `{kind}{end}" not in text} == set()
    for name, shown in BOUNDS[page].items():
        assert f"\n| `{name}` | {shown} |" in text
        number, *unit = shown.split()
        assert options.model_fields[name].default == int(number) * (2**30 if unit else 1)


def test_the_comparison_counts_the_connectors() -> None:
    page = (Path(__file__).parents[2] / "docs" / "comparison.md").read_text(encoding="utf-8")
    assert f"| sources and targets | {len(connector_names())} connectors, " in page
