"""`make lint` finds every word of the dictionary in any context, and ignores public names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LANGUAGE = ROOT / "tests" / "language"
WORDS = [line.split("->")[0] for line in (LANGUAGE / "deprecated_words.txt").read_text(encoding="utf-8").splitlines()]
PUBLIC_NAMES = ["settle_seconds", "quick_check", "file.tell()"]


def found(path: Path) -> list[str]:
    """Return the words that codespell rejects in a file and in its name, in order."""
    command = [sys.executable, "-m", "codespell_lib", "--config", str(LANGUAGE / "codespell.cfg"), str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert (done.returncode == 0) == (not lines), done.stderr
    return [line.rpartition(": ")[2].partition(" ==> ")[0] for line in lines]


def test_every_word_and_phrase_of_the_dictionary_is_found_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("".join(f"The {word} of it.\n" for word in WORDS))
    assert found(tmp_path / "page.md") == WORDS


@pytest.mark.parametrize("name", ["_tell_{}", "{}_store", "Old{}Store", "{}s2", "{}"])
def test_a_word_is_found_as_part_of_a_name(tmp_path: Path, name: str) -> None:
    word = "Governor"
    (tmp_path / "module.py").write_text(f"{name.format(word if name[0].isupper() else word.lower())} = 1\n")
    assert [one.lower().removesuffix("s") for one in found(tmp_path / "module.py") if one != "tell"] == ["governor"]


def test_a_word_is_found_in_the_name_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "old_happenings.py").touch()
    assert found(tmp_path / "old_happenings.py") == ["happenings"]


def test_public_names_keep_their_words(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("".join(f"The {name} is public.\n" for name in PUBLIC_NAMES))
    assert found(tmp_path / "page.md") == []


def test_a_line_can_be_excepted(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("A diary is dear to him.  codespell:ignore dear,him\nIt is dear.\n")
    assert found(tmp_path / "page.md") == ["dear"]
