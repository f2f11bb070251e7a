"""The wheel contains everything that the programs need: they run from it, outside the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel, installed by pip without its dependencies, which the tests' environment has."""
    built, target = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("installed")
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)], cwd=ROOT)
    (wheel,) = built.glob("*.whl")
    run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(target), str(wheel)])
    return target


def run(command: list[str], *, cwd: Path | None = None, path: Path | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(path)} if path else None
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_demo_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    found = run([sys.executable, "-c", "import ingestd; print(ingestd.__file__)"], cwd=tmp_path, path=installed)
    assert Path(found.strip()).is_relative_to(installed)
    output = run([sys.executable, "-m", "ingestd", "demo"], cwd=tmp_path, path=installed)
    assert output.splitlines()[-1].endswith("entries delivered")


def test_the_wheel_has_the_commands_and_the_connectors(installed: Path) -> None:
    (metadata,) = installed.glob("ingestd-*.dist-info/entry_points.txt")
    text = metadata.read_text(encoding="utf-8")
    assert "ingestd = ingestd.cli:main" in text
    assert "workspaced = workspaced.cli:main" in text
    assert "[ingestd.connectors]" in text


def test_every_other_file_of_the_packages_is_in_the_wheel(installed: Path) -> None:
    for package in ("ingestd", "connectors", "workspaced"):
        for path in (ROOT / package).rglob("*"):
            if path.is_file() and path.suffix not in {".py", ".pyc"}:
                assert (installed / path.relative_to(ROOT)).exists(), path


def test_the_units_are_installed_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    run([sys.executable, "-m", "ingestd", "install-units", "--root", str(tmp_path)], cwd=tmp_path, path=installed)
    for name in ("ingestd.service", "ingestd@.service", "workspaced.service"):
        assert (installed / "ingestd/systemd" / name).read_bytes() == (ROOT / "systemd" / name).read_bytes()
        assert (tmp_path / "etc/systemd/system" / name).exists()


def test_the_pages_find_their_templates_and_files_in_the_wheel(installed: Path, tmp_path: Path) -> None:
    script = """
from workspaced.ui.renderer import Assets
from workspaced.ui.renderer import Renderer, PageView
view = PageView(template="refused.html", title="Not found", values={"sentence": "Gone.", "status": 404})
print(Renderer(Assets()).page(view, principal="", form_token="").decode())
"""
    page = run([sys.executable, "-c", script], cwd=tmp_path, path=installed)
    assert "<h1>Not found</h1>" in page
    assert "/ui/assets/ui." in page


def test_the_wheel_contains_nothing_else(installed: Path) -> None:
    top = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert top - {"bin"} == {"ingestd", "connectors", "workspaced"}
    assert not [path for path in installed.rglob("*") if zipfile.is_zipfile(path)]
