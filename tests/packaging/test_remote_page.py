"""The page on remote folders names every bound of the connector with its default, and each kind of address."""

from pathlib import Path
from typing import get_args

from connectors.remote import RemoteOptions
from connectors.remote.address import Scheme

PAGE = (Path(__file__).parents[2] / "docs" / "remote.md").read_text(encoding="utf-8")


def test_every_kind_of_address_is_described() -> None:
    assert {scheme for scheme in get_args(Scheme) if f"\n| `{scheme}://" not in PAGE} == set()


def test_every_bound_is_described_with_its_default() -> None:
    shown = {"max_files": "200000", "max_bytes": "16 GiB", "timeout_seconds": "30", "poll_seconds": "60"}
    defaults = {name: RemoteOptions.model_fields[name].default for name in shown}
    assert defaults == {"max_files": 200_000, "max_bytes": 16 * 2**30, "timeout_seconds": 30, "poll_seconds": 60}
    for name, text in shown.items():
        assert f"\n| `{name}` | {text} |" in PAGE
