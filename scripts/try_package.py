"""Install the Debian package of a folder into a new root folder, use it there, remove and purge it: `make package-test`.

The root folder gets copies of the essential Debian packages of this machine and of what the package depends on, so that the
programs run in a machine's tree in which nothing else is installed. dpkg runs the package's scripts there. It needs root.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

MODES = {
    "etc/ingestd": (0o750, "root", "ingestd"),
    "srv/ingestd": (0o755, "ingestd", "ingestd"),
    "srv/ingestd/drop": (0o2770, "ingestd", "ingestd"),
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
    """Try the package; 0 if everything is as it should be."""
    (package,) = Path(arguments[0]).glob("ingestd_*.deb")
    with tempfile.TemporaryDirectory(prefix="ingestd-root-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        make_root(root, names_of(output("dpkg-deb", "--field", str(package), "Depends")))
        dpkg(root, "--install", str(package.resolve()))
        check_files(root)
        use(root)
        dpkg(root, "--install", str(package.resolve()))  # an upgrade keeps everything
        check_files(root)
        dpkg(root, "--remove", "ingestd")
        expect(not (root / "usr/lib/ingestd").exists(), "removing deletes the programs and their compiled modules")
        expect((root / "etc/ingestd/ingestd.yaml").exists(), "removing keeps the configuration")
        expect((root / "var/lib/ingestd/mark").exists(), "removing keeps the state")
        dpkg(root, "--purge", "ingestd")
        expect(not (root / "etc/ingestd").exists(), "purging deletes the configuration")
        expect(not (root / "var/lib/ingestd").exists(), "purging deletes the state of the daemon")
        expect((root / "var/lib/workspaced/workspaced.db").exists(), "purging keeps the data of the service")
    return 0


def make_root(root: Path, wanted: list[str]) -> None:
    """Copy the packages that a Debian machine has at least, with those of ``wanted``."""
    status = Path("/var/lib/dpkg/status").read_text(encoding="utf-8").split("\n\n")
    taken = needed_packages(status, wanted)
    for link in ("bin", "sbin", "lib", "lib64"):
        if Path(f"/{link}").is_symlink():
            (root / f"usr/{link}").mkdir(parents=True, exist_ok=True)
            (root / link).symlink_to(f"usr/{link}")
    listed = output("dpkg-query", "--listfiles", *sorted(taken)).splitlines()
    for name in sorted({path for path in listed if path.startswith("/") and path != "/."}):
        copy(Path(name), root)
    made = ("passwd", "group", "shadow", "gshadow", "adduser.conf", "ld.so.cache")  # by scripts of the packages
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
    """Return the essential packages, those that are wanted, and what all of them need."""
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
    """Have dpkg regard the copied packages as installed."""
    for name in ("info", "updates", "triggers"):
        (root / "var/lib/dpkg" / name).mkdir(parents=True, exist_ok=True)
    (root / "var/lib/dpkg/available").touch()
    kept = [text for text in status if text.strip() and text.split()[1] in taken]
    (root / "var/lib/dpkg/status").write_text("\n\n".join(kept) + "\n\n", encoding="utf-8")
    for name in taken:
        for listed in Path("/var/lib/dpkg/info").glob(f"{name}[.:]*list"):
            (root / "var/lib/dpkg/info" / listed.name).touch()  # else dpkg warns


def names_of(dependencies: str) -> list[str]:
    """Return all names in a field of dependencies, without versions and architectures."""
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


def check_files(root: Path) -> None:
    """Check folders, owners, units and documents after the installation."""
    accounts = dict(re.findall(r"^(\w+):x:(\d+):", (root / "etc/passwd").read_text(encoding="utf-8"), re.MULTILINE))
    groups = dict(re.findall(r"^(\w+):x:(\d+):", (root / "etc/group").read_text(encoding="utf-8"), re.MULTILINE))
    for name, (mode, user, group) in MODES.items():
        found = (root / name).stat()
        right = (found.st_mode & 0o7777, found.st_uid, found.st_gid) == (mode, int(accounts[user]), int(groups[group]))
        expect(right, f"/{name} has mode {mode:04o} and belongs to {user}:{group}")
    for unit in ("ingestd.service", "ingestd@.service", "workspaced.service"):
        text = (root / "usr/lib/systemd/system" / unit).read_text(encoding="utf-8")
        expect("=/usr/lib/ingestd/bin/" in text and "/opt/" not in text, f"{unit} starts the program of the package")
    for name in ("usr/share/man/man1/ingestd.1.gz", "usr/share/bash-completion/completions/ingestd"):
        expect((root / name).stat().st_size > 0, f"/{name} is installed")


def use(root: Path) -> None:
    """Run the programs in the root folder, as their accounts."""
    for program in ("ingestd", "workspaced"):
        print(inside(root, program, program, "--version").strip())
    inside(root, "workspaced", "workspaced", "keys", "create", "me", "--role", "owner", "--data", "/var/lib/workspaced")
    expect((root / "var/lib/workspaced/workspaced.db").exists(), "workspaced writes its folder as its own account")
    (root / "etc/ingestd/ingestd.yaml").write_text(CONFIGURATION, encoding="utf-8")
    (root / "etc/ingestd/ingestd.yaml").chmod(0o644)
    printed = inside(root, "ingestd", "ingestd", "check", accepted=(5,))
    expect("Nothing listens" in printed, "ingestd check reads /etc/ingestd/ingestd.yaml and tries the service")
    inside(root, "ingestd", "touch", "/var/lib/ingestd/mark")


def inside(root: Path, user: str, *command: str, accepted: tuple[int, ...] = (0,)) -> str:
    """Return the output of a command that runs in the root folder."""
    words = ["chroot", f"--userspec={user}:{user}", str(root), *command]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode not in accepted:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def dpkg(root: Path, *words: str) -> None:
    """Run dpkg on the root folder."""
    print(output("dpkg", f"--root={root}", "--log=/dev/null", *words).strip())


def expect(right: bool, sentence: str) -> None:
    """Print what was checked; end the program if it is not so."""
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
