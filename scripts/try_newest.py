"""Run what CI runs in a new root folder of another Debian release, with its Python: `make newest-test`.

debootstrap makes the root folder. A clone of HEAD in it runs `.ci/run`, which installs what the tests need. It needs root, the
network and Debian's package `debootstrap`.
"""

import os
import shutil
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
INCLUDED = "ca-certificates,git,make,python3-venv"
CLONE = "/srv/checkout"
BOOTED = "tests/process/test_booted_units.py"
CONFIGURATION = (
    Path("/etc/pip.conf"),
    Path.home() / ".config/pip/pip.conf",
    Path.home() / ".npmrc",
    Path("/etc/resolv.conf"),
)
"""Files that say from where this machine gets packages."""
NOT_THERE = ("PYTHON", "PYENV", "VIRTUAL_ENV", "MAKE", "MFLAGS", "PIP_FIND_LINKS", "INGESTD_", "WORKSPACED_", "TMPDIR")
"""Beginnings of variables that describe this machine, and not the new root folder."""

# The new root is the root of a namespace: a chroot could start no container, which some tests do. All mounts end with it.
ENTER = """
mount --make-rprivate /
mount --bind "$1" "$1"
for shared in sys dev; do mount --rbind "/$shared" "$1/$shared"; done
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/run"
cd "$1"
mkdir -p former
pivot_root . former
umount -l /former
cd "$2"
exec bash .ci/run
"""


def main(release: str) -> int:
    """Run it; return the exit code of `.ci/run`."""
    bootstrap, git = shutil.which("debootstrap"), shutil.which("git")
    if os.geteuid() != 0 or bootstrap is None or git is None:
        raise SystemExit("A root folder needs the account root and Debian's packages debootstrap and git.")
    with tempfile.TemporaryDirectory(prefix="ingestd-newest-") as temporary:
        root = Path(temporary, "root")
        subprocess.run([bootstrap, "--variant=minbase", f"--include={INCLUDED}", release, str(root)], check=True)
        prepare(root)
        subprocess.run([git, "clone", "--quiet", str(ROOT), f"{root}{CLONE}"], check=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(NOT_THERE)}
        environment |= {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
        if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
            print(f"Left out: {BOOTED}. systemd 258 and newer need a machine with control groups of version 2 alone.")
            environment["PYTEST_ADDOPTS"] = f"--ignore={BOOTED}"
        namespace = ("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL")
        entered = [*namespace, "sh", "-ec", ENTER, "sh", str(root), CLONE]
        return subprocess.run(entered, env=environment, check=False).returncode


def prepare(root: Path) -> None:
    """Have the new root folder use the package registries of this machine, and start no server at its installation."""
    for path in CONFIGURATION:
        if path.exists():
            target = Path(f"{root}{path}")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    trusted = ssl.get_default_verify_paths().cafile
    if trusted is not None:  # this machine's network may have an authority of its own
        shutil.copy(trusted, root / "etc/ssl/certs/ca-certificates.crt")
    # A mirror may keep a release as it was on one day.
    (root / "etc/apt/apt.conf.d/mirror").write_text('Acquire::Check-Valid-Until "false";\n', encoding="ascii")
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
    policy.chmod(0o755)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
