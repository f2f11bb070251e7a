"""The wheel has every tracked file and nothing else, and works in an environment with only its declared dependencies."""

from __future__ import annotations

import subprocess
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support.clean_environment import CleanEnvironment

ROOT = Path(__file__).parents[2]
PACKAGES = ("ingestd", "connectors", "workspaced")
TEST_TOOLS = ("pytest", "hypothesis", "mypy", "ruff", "openpyxl", "psutil")
CONFIGURATION = """
service: {url: http://127.0.0.1:1, api_key: "k-1"}
state: ingestd.db
pipelines:
  - {name: mass-budget, source: {connector: directory, path: drop}, sink: {workspace: Rover, label: Mass budget},
     entries: {key: "{part_number}.mass", value: "{mass_kg}"}}
"""


@pytest.fixture(scope="module")
def daemon_only(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> CleanEnvironment:
    return CleanEnvironment(tmp_path_factory.mktemp("daemon"), wheels=[wheel], requirements=["ingestd"])


@pytest.fixture(scope="module")
def with_service(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> CleanEnvironment:
    return CleanEnvironment(tmp_path_factory.mktemp("service"), wheels=[wheel], requirements=["ingestd[workspaced]"])


def test_the_wheel_has_every_tracked_file_of_the_packages(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True
    )
    tracked = {name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}
    assert {Path(name).suffix for name in tracked} >= {".py", ".typed", ".sql", ".css", ".js", ".html"}
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
    assert tracked - names == set()
    assert {name.partition("/")[0] for name in names} - set(PACKAGES) == {f"ingestd-{version('ingestd')}.dist-info"}
    assert not [name for name in names if name.endswith((".whl", ".zip"))]


def test_the_environment_has_no_packages_of_the_tests(daemon_only: CleanEnvironment, tmp_path: Path) -> None:
    script = f"from importlib.util import find_spec; print([tool for tool in {TEST_TOOLS} if find_spec(tool)])"
    assert daemon_only.run("python", "-c", script, cwd=tmp_path) == "[]\n"


def test_the_units_are_installed_from_the_wheel(daemon_only: CleanEnvironment, tmp_path: Path) -> None:
    daemon_only.run("ingestd", "install-units", "--root", str(tmp_path), cwd=tmp_path)
    for name in ("ingestd.service", "ingestd@.service", "workspaced.service"):
        (shipped,) = daemon_only.binaries.parent.rglob(f"ingestd/systemd/{name}")
        assert shipped.read_bytes() == (ROOT / "systemd" / name).read_bytes()
        assert (tmp_path / "etc/systemd/system" / name).exists()


def test_the_daemon_needs_none_of_the_extras(daemon_only: CleanEnvironment, tmp_path: Path) -> None:
    assert "Usage: ingestd" in daemon_only.run("ingestd", "--help", cwd=tmp_path)
    (tmp_path / "drop").mkdir()
    (tmp_path / "ingestd.yaml").write_text(CONFIGURATION)
    output = daemon_only.run("ingestd", "check", cwd=tmp_path, check=False)
    assert "Nothing listens at the service's address." in output
    assert "No module named" not in output


def test_the_demo_runs_with_the_service_installed_as_an_extra(with_service: CleanEnvironment, tmp_path: Path) -> None:
    assert "Usage: workspaced" in with_service.run("workspaced", "--help", cwd=tmp_path)
    output = with_service.run("ingestd", "demo", cwd=tmp_path)
    assert output.splitlines()[-1].endswith("entries delivered")
