"""The page on HTTP services names every kind of page and every limit of the connector, with its default."""

from pathlib import Path
from typing import get_args

from connectors.http import HttpOptions
from connectors.http.options import PageKind

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")


def test_every_kind_of_page_is_described() -> None:
    assert {kind for kind in get_args(PageKind) if f"\n| `{kind}` |" not in PAGE} == set()


def test_every_limit_is_described_with_its_default() -> None:
    defaults = {name: HttpOptions.model_fields[name].default for name in ("max_pages", "max_bytes", "timeout_seconds")}
    assert defaults == {"max_pages": 1000, "max_bytes": 2**30, "timeout_seconds": 30}
    for name, shown in {"max_pages": "1000", "max_bytes": "1 GiB", "timeout_seconds": "30"}.items():
        assert f"\n| `{name}` | {shown} |" in PAGE
