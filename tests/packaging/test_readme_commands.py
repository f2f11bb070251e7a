"""The README: its first pipeline, pasted as one block, with a free port; its links, its length and its picture."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.executed_page import run_page
from tests.support.free_port import free_port

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_pipeline_works_when_its_commands_are_pasted_as_one_block(tmp_path: Path) -> None:
    port = str(free_port())
    part = README.partition("## First pipeline")[2].partition("\n## ")[0].replace("8400", port)
    (configuration,) = re.findall(r"```yaml\n(.*?)```", part, re.DOTALL)
    assert len(configuration.splitlines()) == 6
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "run.csv").write_text("part_number,mass_kg\n00417,0.10\n01523,2\n")
    # The admin port is the next one, which may be in use.
    named = part.replace("```yaml\n", "```yaml\n# ingestd.yaml\n")
    output = run_page(named, tmp_path, {"WORKSPACED_SERVE_PORT": port, "WORKSPACED_ADMIN_PORT": "0"})
    assert "2 entries delivered, 0 pending, 0 rejected." in output
    assert "00417.mass = 0.10" in output
    assert "Traceback" not in output
    assert (tmp_path / "key").stat().st_mode & 0o077 == 0


def test_its_links_exist_and_it_is_read_in_a_minute() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)(?:#([^)]+))?\)", README)
    assert len(links) > 10
    for path, anchor in links:
        assert (ROOT / path).is_file(), path
        if anchor:
            headings = re.findall(r"^#+ (.+)$", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}, anchor
    assert len(re.sub(r"```.*?```", "", README, flags=re.DOTALL).split()) <= 500
    assert "curl" not in README
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert [(ROOT / one).stat().st_size < 100_000 for one in pictures] == [True]
