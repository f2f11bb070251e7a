"""Test the Debian package in a new root folder: install, use, upgrade, remove and purge it: `make package-test`.

The root folder has only copies of this machine's essential Debian packages and of the dependencies, so the test finds a missing
dependency. dpkg runs the package's scripts there. In a second root folder, systemd is booted, and the commands of the
installation page run. This program needs root.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.package import PROGRAMS
from scripts.root_folder import expect, make_root, names_of, output
from scripts.try_booted_package import WANTED, try_booted

MODES = {
    "etc/ingestd": (0o750, "root", "ingestd"),
    "srv/ingestd": (0o755, "root", "root"),
    "srv/ingestd/drop": (0o2770, "ingestd", "ingestd-drop"),
    "var/lib/ingestd": (0o750, "ingestd", "ingestd"),
    "var/lib/workspaced": (0o700, "workspaced", "workspaced"),
}
CONFIGURATION = """\
service: {url: "http://127.0.0.1:9", api_key: "k"}
state: /var/lib/ingestd/ingestd.db
pipelines:
  - {name: masses, source: {connector: directory, path: /srv/ingestd/drop}, sink: {workspace: Rover, label: Masses},
     entries: {key: "{part}.mass", value: "{mass}"}}
"""


def main(arguments: list[str]) -> int:
    """Test the package in the folder ``arguments[0]``; return 0 if every check succeeds."""
    (package,) = Path(arguments[0]).glob("ingestd_*.deb")
    needs = names_of(output("dpkg-deb", "--field", str(package), "Depends"))
    with tempfile.TemporaryDirectory(prefix="ingestd-root-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        make_root(root, needs)
        dpkg(root, "--install", str(package.resolve()))
        check_files(root)
        use(root)
        dpkg(root, "--install", str(package.resolve()))  # an upgrade keeps everything
        check_files(root)
        try_link(root, package)
        dpkg(root, "--remove", "ingestd")
        expect(not (root / "usr/lib/ingestd").exists(), "removing deletes the programs and their compiled modules")
        expect((root / "etc/ingestd/ingestd.yaml").exists(), "removing keeps the configuration")
        expect((root / "var/lib/ingestd/mark").exists(), "removing keeps the state")
        dpkg(root, "--purge", "ingestd")
        expect(not (root / "etc/ingestd").exists(), "purging deletes the configuration")
        expect(not (root / "var/lib/ingestd").exists(), "purging deletes the state of the daemon")
        expect((root / "var/lib/workspaced/workspaced.db").exists(), "purging keeps the data of the service")
    with tempfile.TemporaryDirectory(prefix="ingestd-root-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        make_root(root, [*needs, *WANTED])
        dpkg(root, "--install", str(package.resolve()))
        try_booted(root, package)
    return 0


def try_link(root: Path, package: Path) -> None:
    """Check that an upgrade does not change the target of a link that replaced the drop folder."""
    drop, target = root / "srv/ingestd/drop", root / "etc/of-root"
    target.mkdir(mode=0o700)
    drop.rename(drop.with_name("kept"))
    drop.symlink_to("/etc/of-root")
    dpkg(root, "--install", str(package.resolve()))
    found = target.stat()
    expect((found.st_uid, found.st_mode & 0o7777) == (0, 0o700), "an upgrade does not follow a link of the drop folder")
    drop.unlink()
    drop.with_name("kept").rename(drop)


def check_files(root: Path) -> None:
    """Check folders, owners, units and documents after the installation."""
    accounts = dict(re.findall(r"^(\w+):x:(\d+):", (root / "etc/passwd").read_text(encoding="utf-8"), re.MULTILINE))
    groups = dict(re.findall(r"^([\w-]+):x:(\d+):", (root / "etc/group").read_text(encoding="utf-8"), re.MULTILINE))
    for name, (mode, user, group) in MODES.items():
        found = (root / name).stat()
        right = (found.st_mode & 0o7777, found.st_uid, found.st_gid) == (mode, int(accounts[user]), int(groups[group]))
        expect(right, f"/{name} has mode {mode:04o} and belongs to {user}:{group}")
    for unit in ("ingestd.service", "ingestd@.service", "workspaced.service"):
        text = (root / "usr/lib/systemd/system" / unit).read_text(encoding="utf-8")
        expect("=/usr/lib/ingestd/bin/" in text and "/opt/" not in text, f"{unit} starts the program of the package")
    for program in PROGRAMS:
        name = f"usr/share/bash-completion/completions/{program}"
        expect(
            f"complete -o nosort -F _{program}_completion {program}" in (root / name).read_text(),
            f"/{name} is installed",
        )


def use(root: Path) -> None:
    """Run each program in the root folder with its own account."""
    for program in PROGRAMS:
        print(inside(root, program, program, "--version").strip())
    inside(root, "workspaced", "workspaced", "keys", "create", "me", "--role", "owner", "--data", "/var/lib/workspaced")
    expect((root / "var/lib/workspaced/workspaced.db").exists(), "workspaced writes its folder as its own account")
    (root / "etc/ingestd/ingestd.yaml").write_text(CONFIGURATION, encoding="utf-8")
    (root / "etc/ingestd/ingestd.yaml").chmod(0o644)
    printed = inside(root, "ingestd", "ingestd", "check", accepted=(5,))
    expect("Nothing listens" in printed, "ingestd check reads /etc/ingestd/ingestd.yaml and tries the service")
    inside(root, "ingestd", "touch", "/var/lib/ingestd/mark")


def inside(root: Path, user: str, *command: str, accepted: tuple[int, ...] = (0,)) -> str:
    """Run a command in the root folder as ``user``, and return its output."""
    words = ["chroot", f"--userspec={user}:{user}", str(root), *command]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode not in accepted:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def dpkg(root: Path, *words: str) -> None:
    """Run dpkg on the root folder."""
    print(output("dpkg", f"--root={root}", "--log=/dev/null", *words).strip())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
