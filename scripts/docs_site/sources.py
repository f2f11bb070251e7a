"""The hand-written pages: copied from the checkout, with links that are changed for the layout of the site."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path, PurePosixPath

# Pages outside docs/, and their paths in the site.
OTHER_PAGES = {
    "ARCHITECTURE.md": "development/architecture.md",
    "CONTRIBUTING.md": "development/contributing.md",
    "bench/README.md": "development/benchmarks.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
_LANGUAGES = {".md": "markdown", ".py": "python", ".service": "ini", ".yaml": "yaml"}
_LINK = re.compile(r"(?<=\]\()(?!#|[a-z]+:)([^)\s#]+)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_FILE_NAME = re.compile(r"\A```([a-z]+) ([^\s\"]+)$", re.MULTILINE)
"""The first line of a code block that shows a file, with the file's name. The renderer accepts the name only as a title."""


class DeadLink(ValueError):
    """A page links to a file that does not exist."""


def copy_pages(root: Path, folder: Path) -> None:
    """Copy the pages of the checkout ``root``, and the files to which they link, into ``folder``.

    The reference pages are generated separately: links to ``docs/reference`` are not checked.

    Raises:
        DeadLink: a page links to a file that does not exist.
    """
    pages = [*(path.relative_to(root) for path in sorted((root / "docs").rglob("*.md"))), *map(Path, OTHER_PAGES)]
    linked: set[str] = set()
    for page in pages:
        target = folder / site_path(page.as_posix())
        target.parent.mkdir(parents=True, exist_ok=True)
        text, files = _relinked((root / page).read_text(encoding="utf-8"), page, root)
        target.write_text(text, encoding="utf-8")
        linked |= files
    for name in sorted(linked):
        _copy_file(root, folder, name)


def site_path(path: str) -> str:
    """Return the site's path for a file of the checkout. A source file becomes a page that shows the file."""
    if path in OTHER_PAGES:
        return OTHER_PAGES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"files/{path}.md" if PurePosixPath(path).suffix in _LANGUAGES else f"files/{path}"


def _relinked(text: str, page: Path, root: Path) -> tuple[str, set[str]]:
    """Return a page with the links of the site, and the linked files that are not hand-written pages."""
    here = PurePosixPath(site_path(page.as_posix())).parent
    files: set[str] = set()

    def relink(link: re.Match[str]) -> str:
        path = os.path.normpath(page.parent / link[1])
        place = site_path(path)
        if not path.startswith("docs/reference/") and not (root / path).is_file():
            raise DeadLink(f"{page} links to {link[1]}, but there is no file {path}.")
        if place.startswith("files/") or not place.endswith(".md"):
            files.add(path)
        return os.path.relpath(place, here)

    # Parts with an odd number are code blocks.
    parts = _FENCE.split(text)
    return "".join(
        _FILE_NAME.sub(r'```\1 title="\2"', part) if number % 2 else _LINK.sub(relink, part)
        for number, part in enumerate(parts)
    ), files


def _copy_file(root: Path, folder: Path, name: str) -> None:
    target = folder / site_path(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    language = _LANGUAGES.get(PurePosixPath(name).suffix)
    if language is None:
        shutil.copy(root / name, target)
        return
    text = (root / name).read_text(encoding="utf-8")
    target.write_text(f"# {name}\n\n``````{language}\n{text}``````\n", encoding="utf-8")
