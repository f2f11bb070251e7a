"""`make site`: build the documentation site into build/docs/site."""

from __future__ import annotations

from pathlib import Path

from scripts.docs_site.build import build_site

ROOT = Path(__file__).parents[2]

print(f"The site is in {build_site(ROOT, ROOT / 'build' / 'docs').relative_to(ROOT)}.")
