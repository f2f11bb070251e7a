"""The documentation site builds without a dead link, is complete, and loads nothing from other hosts."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ingestd.daemon.exit_codes import ExitCode
from ingestd.settings.service import ServiceSettings
from ingestd.web.metrics import METRICS
from scripts.docs_site.build import build_site
from scripts.docs_site.reference import reference_pages
from scripts.docs_site.sources import DeadLink

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the site is made of, which a test may change."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("docs", "config", "systemd", "examples", "ingestd/client", "ingestd/sdk"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "bench").mkdir()
    for name in ("mkdocs.yml", "Containerfile", "bench/README.md", *(path.name for path in ROOT.glob("*.md"))):
        shutil.copy(ROOT / name, folder / name)
    return folder


def test_the_site_has_every_page_renders_blocks_of_code_and_loads_nothing_from_other_hosts(tmp_path: Path) -> None:
    site = build_site(ROOT, tmp_path / "site")
    listed = re.findall(r": (\S+)\.md$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(listed) > 25
    for name in listed:
        page = (site / f"{name.replace('README', 'index')}.html").read_text(encoding="utf-8")
        assert re.findall(r"""<(?:script|img|iframe)[^>]+src=["']?(?:https?:)?//[^"'> ]+""", page) == [], name
        assert "```" not in page, name
        assert re.findall(r"""<link[^>]+rel=["']?(?:stylesheet|preconnect)[^>]+(?:https?:)?//[^>]+""", page) == [], name

    assert "parts.csv" in re.findall(
        r"""class="filename">([^<]+)""", (site / "mapping.html").read_text(encoding="utf-8")
    )


@pytest.mark.parametrize("link", ["nowhere.md", "files.md#nowhere"])
def test_a_dead_page_or_anchor_fails_the_build(checkout: Path, tmp_path: Path, link: str) -> None:
    page = checkout / "docs" / "glossary.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(f"{text}\n[dead]({link})\n", encoding="utf-8")
    try:
        with pytest.raises((SystemExit, DeadLink)) as failure:
            build_site(checkout, tmp_path / "site")
    finally:
        page.write_text(text, encoding="utf-8")
    assert "glossary.md" in str(failure.value)
    assert "nowhere" in str(failure.value)


def test_the_reference_has_every_metric_setting_and_exit_code() -> None:
    pages = reference_pages()
    assert {name for name in METRICS if f"`{name}`" not in pages["metrics.md"]} == set()
    assert {name for name in ServiceSettings.model_fields if f"| `{name}` |" not in pages["configuration.md"]} == set()
    assert {code for code in ExitCode if f"| {code.value} |" not in pages["errors.md"]} == set()
    assert "`partition_read`" in pages["events.md"]
    assert "## ingestd rejected list" in pages["commands.md"]
    assert "## workspaced keys create" in pages["commands.md"]
