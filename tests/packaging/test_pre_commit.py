"""The git hooks run `make check` without the tests, from this checkout only."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
CONFIGURATION = ROOT / ".pre-commit-config.yaml"


def test_the_hooks_are_the_parts_of_make_check_without_the_tests() -> None:
    found = re.search(r"^check: \$\(DEV\) ([a-z ]+) test ##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found is not None
    (repository,) = YAML(typ="safe", pure=True).load(CONFIGURATION)["repos"]
    assert repository["repo"] == "local"
    assert [hook["entry"] for hook in repository["hooks"]] == [f"make {part}" for part in found[1].split()]
    assert {(hook["language"], hook["pass_filenames"]) for hook in repository["hooks"]} == {("system", False)}


def test_pre_commit_accepts_the_configuration() -> None:
    command = [sys.executable, "-m", "pre_commit", "validate-config", str(CONFIGURATION)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
