"""A root folder like that of a new Debian machine: copies of this machine's essential packages and of chosen packages."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path


def make_root(root: Path, wanted: list[str]) -> None:
    """Copy the essential packages, the packages in ``wanted``, and all their dependencies into ``root``."""
    status = Path("/var/lib/dpkg/status").read_text(encoding="utf-8").split("\n\n")
    taken = needed_packages(status, wanted)
    for link in ("bin", "sbin", "lib", "lib64"):
        if Path(f"/{link}").is_symlink():
            (root / f"usr/{link}").mkdir(parents=True, exist_ok=True)
            (root / link).symlink_to(f"usr/{link}")
    listed = output("dpkg-query", "--listfiles", *sorted(taken)).splitlines()
    for name in sorted({path for path in listed if path.startswith("/") and path != "/."}):
        copy(Path(name), root)
    made = ("passwd", "group", "shadow", "gshadow", "adduser.conf", "ld.so.cache")  # created by scripts of packages
    for path in (
        *(Path("/etc", name) for name in made),
        *Path("/etc/alternatives").iterdir(),
        *Path("/etc/pam.d").iterdir(),
    ):
        copy(path, root)
    write_dpkg_state(root, status, taken)
    (root / "dev").mkdir(exist_ok=True)
    for name, minor in (("null", 3), ("zero", 5), ("urandom", 9)):
        os.mknod(root / "dev" / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        (root / "dev" / name).chmod(0o666)
    (root / "tmp").chmod(0o1777)


def needed_packages(status: list[str], wanted: list[str]) -> set[str]:
    """Return the essential packages, the packages in ``wanted``, and all their dependencies."""
    records = {}
    for text in status:
        fields = dict(re.findall(r"^(\S+): (.*)$", text, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            records[fields["Package"]] = fields
    provided = {name: owner for owner, one in records.items() for name in names_of(one.get("Provides", ""))}
    left = [*wanted, *(name for name, one in records.items() if one.get("Essential") == "yes")]
    taken: set[str] = set()
    while left:
        name = left.pop()
        name = name if name in records else provided.get(name, "")
        if name and name not in taken:
            taken.add(name)
            left += [*names_of(records[name].get("Depends", "")), *names_of(records[name].get("Pre-Depends", ""))]
    return taken


def write_dpkg_state(root: Path, status: list[str], taken: set[str]) -> None:
    """Write the state files of dpkg, so that dpkg regards the copied packages as installed."""
    for name in ("info", "updates", "triggers"):
        (root / "var/lib/dpkg" / name).mkdir(parents=True, exist_ok=True)
    (root / "var/lib/dpkg/available").touch()
    kept = [text for text in status if text.strip() and text.split()[1] in taken]
    (root / "var/lib/dpkg/status").write_text("\n\n".join(kept) + "\n\n", encoding="utf-8")
    for name in taken:
        for listed in Path("/var/lib/dpkg/info").glob(f"{name}[.:]*list"):
            (root / "var/lib/dpkg/info" / listed.name).touch()  # without it, dpkg warns


def names_of(dependencies: str) -> list[str]:
    """Return all package names in a dependency field, without versions and architectures."""
    return re.findall(r"(?:^|[,|] *)([a-z0-9][a-z0-9+.-]*)", dependencies)


def copy(path: Path, root: Path) -> None:
    """Copy a file, a link or a folder without its content."""
    target = root / path.relative_to("/")
    if target.exists() or target.is_symlink() or not (path.exists() or path.is_symlink()):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        target.symlink_to(path.readlink())
    elif path.is_dir():
        target.mkdir()
        target.chmod(path.stat().st_mode & 0o7777)
    else:
        shutil.copy2(path, target)


def expect(right: bool, sentence: str) -> None:
    """Print a checked ``sentence``; end the program if it is not ``right``."""
    if not right:
        raise SystemExit(f"not so: {sentence}")
    print(f"ok: {sentence}")


def output(*command: str) -> str:
    """Return the standard output of a command that must succeed."""
    environment = {
        **os.environ,
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C.UTF-8",
        "DEBIAN_FRONTEND": "noninteractive",
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout
