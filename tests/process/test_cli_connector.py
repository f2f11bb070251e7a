"""`ingestd connector new` and `check`: each kind of package passes as it is written, and what it lacks is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ingestd.sdk.testing.grade import Requirement, grade_of
from tests.support.daemon_process import here

KILLS = """

from ingestd.sdk.testing import KillConformance, KillRig


class LinesRig(KillRig):
    kills = 1

    def __init__(self, folder):
        self._file = folder / "values.txt"
        self._lines = {}

    def source(self):
        return {"connector": "oven", "path": str(self._file)}

    def entries(self):
        return {"key": "{name}", "value": "{value}"}

    def step(self, number):
        self._lines |= {f"n{number}": f"{number}.10", "shared": str(number)}
        part = self._file.with_suffix(".part")
        part.write_text("".join(f"{name} = {value}\\n" for name, value in self._lines.items()))
        part.replace(self._file)

    def wanted(self):
        return self._lines


class TestKills(KillConformance):
    @pytest.fixture
    def rig(self, tmp_path):
        return LinesRig(tmp_path)
"""
EXPLAIN = '''
    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:
        """Nothing waits."""
        return None

    def verify(self)'''


class Place:
    """A folder for packages. What is in it counts as installed, as after `pip install --editable`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ingestd(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        installed = os.pathsep.join(str(one) for one in (*self.folder.glob("ingestd-*"), self.folder / "installed"))
        return subprocess.run(
            [sys.executable, "-m", "ingestd", *arguments],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": installed, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    def new(self, name: str, *options: str) -> Path:
        made = here(self.folder, "connector", "new", name, *options)
        assert made.returncode == 0, made.stderr
        module = name.replace("-", "_")
        info = self.folder / "installed" / f"ingestd_{module}-0.1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: ingestd-{name}\nVersion: 0.1.0\n")
        title = "".join(part.capitalize() for part in name.split("-"))
        (info / "entry_points.txt").write_text(f"[ingestd.connectors]\n{name} = {module}:{title}Connector\n")
        return self.folder / f"ingestd-{name}"

    def check(self, package: Path, *options: str) -> tuple[int, dict[str, Any]]:
        done = self.ingestd("connector", "check", package.name, "--json", *options)
        assert done.stdout, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return done.returncode, found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("kind", ["snapshot", "follow", "consume"])
def test_a_new_package_passes_its_check_as_it_is(place: Place, kind: str) -> None:
    package = place.new("oven-log", "--kind", kind)
    code, found = place.check(package, "--at-least", "silver")
    assert (code, found["grade"]) == (0, "silver"), found


def test_what_a_connector_lacks_is_named_until_it_is_gold(place: Place) -> None:
    package = place.new("oven")
    source, tests, project = (
        package / "oven" / "connector.py",
        package / "tests" / "test_oven.py",
        package / "pyproject.toml",
    )
    project.write_text(project.read_text().replace("network = false", "network = true"))
    correct = source.read_text()
    source.write_text(correct.replace("if cursor != end", "if cursor == end"))
    code, found = place.check(package)
    assert (code, found["grade"]) == (1, "none")
    requirements = [Requirement(**one) for one in found["requirements"]]
    missing = {one.name: one.sentence for one in requirements if not one.passed}
    assert set(missing) - {"memory"} == {"kit", "faults", "health", "kills", "explain"}
    assert "tests fail" in missing["kit"]
    assert missing["faults"].startswith("Subclass FaultConformance. If no server is read, set `network = false`")
    assert grade_of([one for one in requirements if one.name != "kit"]) == "bronze"
    project.write_text(project.read_text().replace("network = true", "network = false"))
    tests.write_text(tests.read_text() + KILLS)
    source.write_text(correct.replace("\n    def verify(self)", EXPLAIN))
    code, found = place.check(package, "--at-least", "gold")
    assert (code, found["grade"]) == (0, "gold"), found


def test_a_name_that_can_not_be_used_and_an_existing_folder_are_refused(place: Place) -> None:
    refused = here(place.folder, "connector", "new", "Oven_Log")
    assert (refused.returncode, "use small letters" in refused.stderr) == (2, True)
    (place.folder / "ingestd-oven").mkdir()
    again = here(place.folder, "connector", "new", "oven")
    assert (again.returncode, "exists already" in again.stderr) == (2, True)
    bare = here(place.folder, "connector", "check", "ingestd-oven")
    assert (bare.returncode, "pyproject.toml can't be read: No such file" in bare.stderr) == (1, True)
    (place.folder / "ingestd-oven" / "pyproject.toml").write_text("")
    bare = here(place.folder, "connector", "check", "ingestd-oven")
    assert (bare.returncode, "declares no connector" in bare.stderr) == (1, True)
