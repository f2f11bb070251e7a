"""The example of a connector outside the repository: built, installed beside the wheel of the project, tested and used."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.clean_environment import CleanEnvironment, build_wheel
from tests.support.workspaced_process import WorkspaceService, new_key

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "instrument-status"


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> CleanEnvironment:
    example = build_wheel(EXAMPLE, tmp_path_factory.mktemp("example"))
    return CleanEnvironment(
        tmp_path_factory.mktemp("environment"), wheels=[wheel, example], requirements=["ingestd", "pytest"]
    )


def test_its_own_tests_pass_against_the_wheels(environment: CleanEnvironment, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(EXAMPLE / "pyproject.toml", tmp_path)
    output = environment.run("python", "-m", "pytest", "-v", "-p", "no:cacheprovider", cwd=tmp_path)
    assert "TestConformance" in output
    assert re.search(r"^=+ \d+ passed in [0-9.]+s =+$", output, re.MULTILINE), output


def test_the_pipeline_of_its_readme_is_checked_and_delivered(environment: CleanEnvironment, tmp_path: Path) -> None:
    readme = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    (configuration,) = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    (status,) = re.findall(r"```\n(# oven.*?)```", readme, re.DOTALL)
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "oven-3.status").write_text(status + "E-STOP!\n", encoding="utf-8")
    key = new_key(tmp_path / "service")
    with WorkspaceService(tmp_path / "service") as service:
        with service.client(key) as client:
            client.post("/v1/workspace", json={"label": "Rover"}).raise_for_status()
        configuration = configuration.replace("http://127.0.0.1:8400", service.url)
        configuration = configuration.replace("${env:INGESTD_API_KEY}", key)
        (tmp_path / "ingestd.yaml").write_text(configuration, encoding="utf-8")
        checked = environment.run("ingestd", "check", cwd=tmp_path)
        assert "Files that match *.status: 1." in checked
        synced = environment.run("ingestd", "sync", cwd=tmp_path, check=False)
        assert "2 entries delivered, 0 pending, 1 rejected." in synced
    traced = environment.run("ingestd", "trace", "oven-3.temperature", cwd=tmp_path)
    assert "oven-3.temperature = 180.50" in traced
    rejected = environment.run("ingestd", "rejected", "list", cwd=tmp_path, check=False)
    assert "Line 4 does not have the form 'name = value'." in rejected
