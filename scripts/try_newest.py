"""Run CI in a new root folder with another Debian release and its Python: `make newest-test`.

debootstrap makes the root folder. HEAD is cloned into it, and `.ci/run` of the clone installs the needed packages and runs the
tests. This program needs root, the network and Debian's package `debootstrap`.
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
"""Files that configure the package registries and name servers of this machine."""
NOT_THERE = ("PYTHON", "PYENV", "VIRTUAL_ENV", "MAKE", "MFLAGS", "PIP_FIND_LINKS", "INGESTD_", "WORKSPACED_", "TMPDIR")
"""Prefixes of variables that are removed, because they describe this machine and not the new root folder."""

# The root folder becomes the root of a mount namespace, because some tests start containers, which fails in a chroot.
# All mounts end with the namespace.
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
    """Make the root folder and run CI in it; return the exit code of `.ci/run`."""
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
            print(f"Left out: {BOOTED}. systemd 258 and newer need a machine with only version 2 of control groups.")
            environment["PYTEST_ADDOPTS"] = f"--ignore={BOOTED}"
        namespace = ("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL")
        entered = [*namespace, "sh", "-ec", ENTER, "sh", str(root), CLONE]
        return subprocess.run(entered, env=environment, check=False).returncode


def prepare(root: Path) -> None:
    """Make the root folder use the package registries of this machine, and start no server when a package is installed."""
    for path in CONFIGURATION:
        if path.exists():
            target = Path(f"{root}{path}")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    trusted = ssl.get_default_verify_paths().cafile
    if trusted is not None:  # this machine's network may have its own certificate authority
        shutil.copy(trusted, root / "etc/ssl/certs/ca-certificates.crt")
    # A mirror may serve an old snapshot of a release that is no longer valid.
    (root / "etc/apt/apt.conf.d/mirror").write_text('Acquire::Check-Valid-Until "false";\n', encoding="ascii")
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
    policy.chmod(0o755)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
