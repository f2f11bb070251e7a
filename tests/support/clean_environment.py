"""Virtual environments that contain only the declared dependencies of a distribution, made without a package index.

The packages are taken from the environment that runs the tests: as hard links if possible, else as copies.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution
from importlib.util import cache_from_source
from pathlib import Path

from packaging.utils import canonicalize_name

from scripts.locked_requirements import closure

TIMEOUT_SECONDS = 100


def build_wheel(project: Path, folder: Path) -> Path:
    """Build the wheel of the project in a folder; return its path."""
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=project)
    (wheel,) = folder.glob("*.whl")
    return wheel


class CleanEnvironment:
    """A new virtual environment in ``folder`` with ``wheels`` and the packages of ``requirements``, with their dependencies.

    To include the dependencies of a wheel, name its distribution, with extras, in ``requirements``. Other packages of the running
    environment, such as the test tools, are absent.
    """

    def __init__(self, folder: Path, *, wheels: Iterable[Path], requirements: Iterable[str]) -> None:
        venv.create(folder, symlinks=True)
        self.binaries = folder / "bin"
        site_packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
        installed = {canonicalize_name(wheel.name.split("-")[0]) for wheel in wheels}
        for found in closure(requirements, without=installed):
            _link(found, site_packages)
        run(
            [
                *(sys.executable, "-m", "pip", "--python", str(self.binaries / "python"), "install", "--quiet"),
                *("--disable-pip-version-check", "--no-deps", "--no-index", "--no-compile"),
                *map(str, wheels),
            ]
        )

    def run(self, program: str, *arguments: str, cwd: Path, check: bool = True) -> str:
        """Run a program of the environment; return its output of both streams. It must succeed unless ``check`` is false."""
        return run([str(self.binaries / program), *arguments], cwd=cwd, check=check)


def run(command: list[str], *, cwd: Path | None = None, check: bool = True) -> str:
    """Return the output of a command that must succeed, without environment variables that add other packages."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_", "PYTEST_"))
    }
    done = subprocess.run(
        command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=TIMEOUT_SECONDS, check=False,
    )  # fmt: skip
    assert not check or done.returncode == 0, done.stdout
    return done.stdout


def _link(found: Distribution, site_packages: Path) -> None:
    for file in found.files or ():
        if ".." in file.parts:
            continue  # a program in bin/ uses the interpreter of the other environment
        source, target = Path(str(found.locate_file(file))), site_packages / file
        if not source.is_file():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        _link_file(source, target)
        if source.suffix == ".py" and (compiled := Path(cache_from_source(str(source)))).is_file():
            target = Path(cache_from_source(str(target)))
            target.parent.mkdir(exist_ok=True)
            _link_file(compiled, target)


def _link_file(source: Path, target: Path) -> None:
    if target.exists():  # some distributions list what pip has compiled
        return
    try:
        target.hardlink_to(source)
    except OSError:  # the folders are on different file systems
        shutil.copy2(source, target)
