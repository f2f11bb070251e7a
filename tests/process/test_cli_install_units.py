"""`ingestd install-units` writes the units of the package and replaces no file that was edited."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.support.daemon_process import here

UNITS = Path(__file__).parents[2] / "systemd"
PROGRAMS = Path(sys.executable).parent


def test_the_units_of_the_system_start_the_installed_programs(tmp_path: Path) -> None:
    root = tmp_path / "root"
    run = here(tmp_path, "install-units", "--root", str(root))
    assert (run.returncode, run.stderr) == (0, "")
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert found == {
        "etc/systemd/system/ingestd.service",
        "etc/systemd/system/ingestd@.service",
        "etc/systemd/system/workspaced.service",
        "etc/sysusers.d/ingestd.conf",
        "etc/tmpfiles.d/ingestd.conf",
    }
    text = (root / "etc/systemd/system/ingestd.service").read_text()
    assert text == (UNITS / "ingestd.service").read_text().replace("/opt/ingestd/bin", str(PROGRAMS))
    assert f"ExecStart={PROGRAMS}/ingestd run" in text
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in root.rglob("*") if path.is_file())
    assert run.stdout.splitlines()[-4:] == [
        "Next:",
        "  systemd-sysusers ingestd.conf && systemd-tmpfiles --create ingestd.conf",
        "  systemctl daemon-reload",
        "  systemctl enable --now ingestd",
    ]


def test_a_file_that_was_edited_is_replaced_only_with_force(tmp_path: Path) -> None:
    root = tmp_path / "root"
    unit, other = (root / "etc/systemd/system" / name for name in ("ingestd.service", "workspaced.service"))
    here(tmp_path, "install-units", "--root", str(root))
    good = unit.read_text()
    unit.write_text(good + "# edited\n")
    other.unlink()
    run = here(tmp_path, "install-units", "--root", str(root))
    assert run.returncode == 73
    assert f"{unit} has another content" in run.stderr
    assert "Nothing was written" in run.stderr
    assert unit.read_text().endswith("# edited\n")
    assert not other.exists()
    run = here(tmp_path, "install-units", "--root", str(root), "--force")
    assert run.returncode == 0
    assert f"Written: {unit}" in run.stdout
    assert f"Unchanged: {root / 'etc/sysusers.d/ingestd.conf'}" in run.stdout
    assert unit.read_text() == good
    assert other.exists()


def test_the_units_of_an_account_are_below_its_configuration_folder(tmp_path: Path) -> None:
    run = here(tmp_path, "install-units", "--user", HOME=str(tmp_path), XDG_CONFIG_HOME="")
    assert (run.returncode, run.stderr) == (0, "")
    text = (tmp_path / ".config/systemd/user/ingestd.service").read_text()
    assert "--config %E/ingestd/ingestd.yaml" in text
    assert "WantedBy=default.target" in text
    assert "User=" not in text
    # systemd 254 would make the state folder a link to that of the configuration.
    assert not re.search(r"^(StateDirectory|WorkingDirectory)", text, re.MULTILINE)
    assert "systemctl --user daemon-reload" in run.stdout
    assert "loginctl enable-linger" in run.stdout


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "etc").write_text("a file")
    run = here(tmp_path, "install-units", "--root", str(tmp_path))
    assert run.returncode == 73
    assert "can't be written: Not a directory" in run.stderr
