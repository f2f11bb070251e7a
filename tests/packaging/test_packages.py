"""The distributions of the tree: what each one contains and needs, and the scripts of the Debian package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.locked_requirements import closure, locked_requirements
from scripts.package import POSTRM, accounts_and_folders, everything, lines_of, service_dependencies, stage_service
from tests.support.clean_environment import CleanEnvironment, build_wheel

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
ONLY_DAEMON = {"apscheduler", "pint", "rich", "sqlglot", "watchdog"}
ONLY_SERVICE = {"cryptography"}
PREVIEWS = {"pillow", "pypdfium2"}
DRIVERS = {"psycopg", "pymysql"}
FORMATS_AND_REMOTE = {"h5py", "nptdms", "numpy", "obstore", "asyncssh", "paho-mqtt", "scipy"}


@pytest.fixture(scope="module")
def service_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("service")
    stage_service(folder)
    return build_wheel(folder, tmp_path_factory.mktemp("built"))


def needed(*requirements: str) -> set[str]:
    return {canonicalize_name(found.metadata["Name"]) for found in closure(requirements)}


def test_the_daemon_does_not_need_what_only_the_service_needs_and_the_reverse() -> None:
    daemon, service = needed("ingestd"), needed(*service_dependencies())
    assert daemon >= ONLY_DAEMON
    assert service >= ONLY_SERVICE
    assert not daemon & (ONLY_SERVICE | DRIVERS | PREVIEWS)
    assert not service & (ONLY_DAEMON | DRIVERS | PREVIEWS | {"ingestd"})
    assert needed("ingestd[postgres]") - daemon >= {"psycopg"}
    assert needed("ingestd[mariadb]") - daemon >= {"pymysql"}
    assert needed("ingestd[previews]") - daemon >= PREVIEWS
    assert needed(everything()) >= daemon | service | DRIVERS | PREVIEWS | FORMATS_AND_REMOTE


def test_the_locked_versions_of_a_part_are_lines_of_the_lock_file() -> None:
    text = locked_requirements(LOCK, service_dependencies())
    assert set(text.splitlines()) <= set(LOCK.splitlines())
    assert len([line for line in text.splitlines() if not line.startswith(" ")]) == len(needed(*service_dependencies()))
    assert "--hash=sha256:" in text
    assert "pytest" not in text
    numpy = [line for line in LOCK.splitlines() if line.startswith("numpy==")]
    assert len(numpy) > 1, "one version for each range of Python"
    assert set(numpy) <= set(locked_requirements(LOCK, ["ingestd[hdf5]"]).splitlines())


def test_the_packages_of_extras_in_locked_lines_are_locked_lines_too() -> None:
    assert any(re.match(r"[\w.-]+\[.+\]==", line) for line in LOCK.splitlines())
    for requirements in ([everything()], service_dependencies()):
        text = locked_requirements(LOCK, requirements)
        lines = [line.partition("==")[0] for line in text.splitlines() if not line.startswith(" ")]
        names = {canonicalize_name(line.partition("[")[0]) for line in lines}
        for line in lines:
            if "[" in line:
                assert needed(line) <= names, line


def test_the_service_alone_starts_in_an_environment_without_the_daemon(service_wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(service_wheel) as opened:
        packages = {"/".join(Path(name).parts[:2]) for name in opened.namelist()}
    assert not {"ingestd/cli", "ingestd/daemon", "ingestd/mirror", "ingestd/sdk"} & packages
    assert not any(name.startswith("connectors") for name in packages)
    service = CleanEnvironment(tmp_path / "venv", wheels=[service_wheel], requirements=service_dependencies())
    installed = {
        canonicalize_name(PathDistribution(path).metadata["Name"]) for path in (tmp_path / "venv").rglob("*.dist-info")
    }
    assert installed - {"pip", "setuptools"} == needed(*service_dependencies()) | {"workspaced"}
    key = service.run("workspaced", "keys", "create", "me", "--role", "owner", "--data", "data", cwd=tmp_path)
    assert len(key.split()) == 1
    script = (
        "import pkgutil, importlib, workspaced\nfor m in pkgutil.walk_packages(workspaced.__path__, 'workspaced.'):\n"
    )
    optional = ("postgres", "__main__", "blobs.bucket", "converters.images", "converters.documents")
    script += f"    if not any(one in m.name for one in {optional}):\n"
    script += "        importlib.import_module(m.name)"
    service.run("python", "-c", script, cwd=tmp_path)


def test_the_service_of_the_daemon_alone_names_the_extra(tmp_path: Path) -> None:
    script = "import sys\nsys.modules['cryptography'] = None\nfrom workspaced.cli import main\nmain(['serve'])"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 78
    assert "pip install 'ingestd[workspaced]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_service_has_its_dependencies_with_the_ranges_of_the_project() -> None:
    names = [canonicalize_name(Requirement(text).name) for text in service_dependencies()]
    assert len(names) == len(set(names))


def test_the_debian_package_creates_the_accounts_and_folders_of_systemd() -> None:
    commands = list(accounts_and_folders())
    assert [line for line in commands if line.startswith("adduser --system")] == [
        one for one in commands if one.endswith((" ingestd", " workspaced")) and one.startswith("adduser")
    ]
    for line in lines_of("ingestd.tmpfiles.conf"):
        _, path, mode, *_ = line.split()
        assert any(path in command and mode in command for command in commands), line
    syntax = subprocess.run(
        ["sh", "-n"], input="\n".join([*commands, POSTRM]), capture_output=True, text=True, check=False
    )
    assert syntax.returncode == 0, syntax.stderr


def test_the_drop_folder_has_a_group_that_reads_nothing_else() -> None:
    group = {path: group for _, path, _, _, group, *_ in map(str.split, lines_of("ingestd.tmpfiles.conf"))}
    assert [path for path, one in group.items() if one == "ingestd-drop"] == ["/srv/ingestd/drop"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change owners")
@pytest.mark.parametrize("version", ["", "0.1.0"], ids=["first installation", "upgrade"])
def test_the_scripts_of_the_debian_package_never_follow_a_link_of_the_daemons_account(
    tmp_path: Path, version: str
) -> None:
    outside = tmp_path / "outside"
    for name in ("srv/ingestd", "var/lib", "etc/ingestd", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "srv/ingestd/drop").symlink_to(outside)
    (tmp_path / "etc/ingestd/ingestd.yaml").symlink_to(outside)
    before = outside.stat()
    # The accounts exist in a root folder only, so another account owns the folders here.
    commands = [re.sub(r" -[og] [\w-]+", "", one.replace(" /", f" {tmp_path}/")) for one in accounts_and_folders()]
    script = "\n".join(["adduser() { :; }", "addgroup() { :; }", *commands])
    subprocess.run(["sh", "-ec", script, "sh", "configure", version], check=True)
    after = outside.stat()
    assert (after.st_uid, after.st_mode) == (before.st_uid, before.st_mode)
    assert (tmp_path / "var/lib/ingestd").is_dir() is (version == "")
