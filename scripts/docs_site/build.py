"""The build of the documentation site: its pages are written into a folder, then Zensical makes HTML of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import click

from scripts.docs_site.reference import reference_pages
from scripts.docs_site.sources import copy_pages


def build_site(root: Path, folder: Path) -> Path:
    """Build the site of the checkout ``root`` in ``folder``, and return the folder of the HTML. ``folder`` is replaced.

    Raises:
        DeadLink: a page links to a file that does not exist.
        SystemExit: Zensical found a link to a missing page or anchor; the message has its output.
    """
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    pages.mkdir(parents=True)
    shutil.copy(root / "mkdocs.yml", folder)
    for name, text in reference_pages().items():
        (pages / "reference").mkdir(exist_ok=True)
        (pages / "reference" / name).write_text(text, encoding="utf-8")
    copy_pages(root, pages)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(folder / "mkdocs.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        warnings, _, failure = done.stderr.partition("Traceback")
        raise SystemExit(f"The site has mistakes:\n{click.unstyle(warnings) or failure}")
    return folder / "site"
