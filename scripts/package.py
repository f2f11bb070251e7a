"""Build the packages into dist/: `make package`. Timestamps in the packages are the commit time of HEAD.

- ``ingestd``: sdist and wheel of the daemon and the service. The service's dependencies are the extra ``workspaced``.
- ``workspaced``: a wheel of the service alone, without code or dependencies that only the daemon needs.
- ``ingestd_VERSION_ARCHITECTURE.deb``: both programs and their locked dependencies, in one virtual environment.
- ``requirements-*.txt``: the locked versions, with hashes, for the Containerfile.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from email.utils import formatdate
from pathlib import Path
from typing import Any

from scripts.locked_requirements import locked_requirements

ROOT = Path(__file__).parents[1]
NOT_LOCKED = {"mssql", "oracle"}
"""Extras that no package contains. The Makefile says why they are not locked."""
HOME = "usr/lib/ingestd"
"""The virtual environment of the Debian package. It uses Debian's interpreter."""

PROGRAMS = ("ingestd", "workspaced")
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/{program}",
    "zsh": "usr/share/zsh/vendor-completions/_{program}",
    "fish": "usr/share/fish/vendor_completions.d/{program}.fish",
}
COPYRIGHT = """\
Copyright (C) 2026 the authors of ingestd

ingestd and workspaced: Apache-2.0. Debian has the text in /usr/share/common-licenses/Apache-2.0.
The licence of each library is in its folder below /{home}.
"""
MAINTAINER = "The ingestd project <ingestd@example.org>"
CHANGELOG = """\
ingestd ({version}) stable; urgency=medium

  * The changes are in CHANGELOG.md.gz.

 -- {maintainer}  {time}
"""
START = "#!/{home}/bin/python3\nimport sys\n\nfrom {program}.cli import main\n\nsys.exit(main())\n"

POSTINST = """\
#!/bin/sh
set -e
if [ "$1" = configure ]; then
{accounts}
    /{home}/bin/python3 -m compileall -q /{home}/lib
    if [ -d /run/systemd/system ]; then
        systemctl --system daemon-reload
        deb-systemd-invoke try-restart {units}
    fi
    if [ -z "$2" ]; then
        echo "ingestd: next: ingestd init --output /etc/ingestd/ingestd.yaml; see /usr/share/doc/ingestd/installation.md"
    fi
fi
"""
PRERM = """\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    deb-systemd-invoke stop {units}
fi
find /{home} -name __pycache__ -type d -prune -exec rm -r {{}} +
"""
POSTRM = """\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload
fi
if [ "$1" = purge ]; then
    rm -rf /etc/ingestd /var/lib/ingestd
    wants=/etc/systemd/system/multi-user.target.wants
    rm -f $wants/ingestd.service $wants/ingestd@*.service $wants/workspaced.service
    for kept in /srv/ingestd /var/lib/workspaced; do
        if [ -e "$kept" ]; then
            echo "ingestd: $kept is kept. Delete it if it is not needed."
        fi
    done
fi
"""


def main(arguments: list[str]) -> int:
    """Build the packages; 0 on success."""
    parser = argparse.ArgumentParser(description="Build wheels, sdist and Debian package.")
    parser.add_argument("--into", type=Path, default=ROOT / "dist")
    parser.add_argument("--python", default="/usr/bin/python3", help="the interpreter of the Debian package")
    parser.add_argument(
        "--only", choices=("python", "debian"), help="only the wheels and the sdist, or only the Debian package"
    )
    given = parser.parse_args(arguments)
    into: Path = given.into.resolve()
    into.mkdir(parents=True, exist_ok=True)
    os.environ["SOURCE_DATE_EPOCH"] = output("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()
    with tempfile.TemporaryDirectory(prefix="ingestd-package-") as work:
        built = [*build_python(Path(work), into)]
        if given.only != "python":
            built.append(build_debian(Path(work), into, built[0], given.python))
    for path in built:
        print(f"{path.name}  {path.stat().st_size / 1e6:.1f} MB")
    return 0


def build_python(work: Path, into: Path) -> Iterator[Path]:
    """Build the wheel and the sdist of ``ingestd``, the wheel of ``workspaced`` and the lists of locked versions."""
    version = str(project()["version"])
    run(sys.executable, "-m", "hatchling", "build", "-d", str(into), cwd=ROOT)
    yield into / f"ingestd-{version}-py3-none-any.whl"
    yield into / f"ingestd-{version}.tar.gz"
    stage_service(work / "service")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into), cwd=work / "service")
    yield into / f"workspaced-{version}-py3-none-any.whl"
    lock = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    for name, needs in (("ingestd", [everything()]), ("workspaced", service_dependencies())):
        path = into / f"requirements-{name}.txt"
        path.write_text(locked_requirements(lock, needs), encoding="utf-8")
        yield path


def project() -> Mapping[str, Any]:
    """Return the table ``project`` of pyproject.toml."""
    table: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def everything() -> str:
    """Return the requirement of the Debian package and the image: all locked extras, because users can't add extras there."""
    extras = sorted(set(project()["optional-dependencies"]) - NOT_LOCKED)
    return f"ingestd[{','.join(extras)}]"


def service_alone() -> Mapping[str, Sequence[str]]:
    """Return the table of pyproject.toml that describes the distribution ``workspaced``."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    table: Mapping[str, Sequence[str]] = tomllib.loads(text)["tool"]["ingestd"]["service-alone"]
    return table


def service_dependencies() -> list[str]:
    """Return the requirements of the distribution ``workspaced``, with the version ranges of pyproject.toml."""
    ranges = {re.split(r"[\[<>=!~ ]", text)[0]: text for text in project()["dependencies"]}
    return [*(ranges[name] for name in service_alone()["shared"]), *project()["optional-dependencies"]["workspaced"]]


def stage_service(folder: Path) -> None:
    """Write the source of the distribution ``workspaced`` into ``folder``."""
    for part in service_alone()["parts"]:
        target = folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, target)
    common = project()
    lines = [
        "[build-system]", 'requires = ["hatchling>=1.27,<2"]', 'build-backend = "hatchling.build"',
        "[project]", 'name = "workspaced"', f'version = "{common["version"]}"',
        'description = "Engineering data workspace service, without the daemon ingestd."',
        f'requires-python = "{common["requires-python"]}"', f'license = "{common["license"]}"',
        f"dependencies = {service_dependencies()!r}",
        "[project.optional-dependencies]",
        *(f"{extra} = {common['optional-dependencies'][extra]!r}" for extra in service_alone()["extras"]),
        "[project.scripts]", 'workspaced = "workspaced.cli:main"',
        "[tool.hatch.build.targets.wheel]", 'packages = ["ingestd", "workspaced"]',
    ]  # fmt: skip
    (folder / "pyproject.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def build_debian(work: Path, into: Path, wheel: Path, python: str) -> Path:
    """Build the Debian package; return its path."""
    root, version = work / "root", str(project()["version"])
    install_environment(root / HOME, wheel, into / "requirements-ingestd.txt", python)
    for program in PROGRAMS:
        start = root / HOME / "bin" / program
        write(start, START.format(home=HOME, program=program), mode=0o755)
        link = root / "usr/bin" / program
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../lib/ingestd/bin/{program}")
        command = str(Path(sys.executable).parent / program)
        for shell, place in COMPLETIONS.items():
            script = output("env", f"_{program.upper()}_COMPLETE={shell}_source", command)
            write(root / place.format(program=program), script)
    for unit in sorted((ROOT / "systemd").glob("*.service")):
        text = unit.read_text(encoding="utf-8").replace("/opt/ingestd", f"/{HOME}")
        write(root / "usr/lib/systemd/system" / unit.name, text)
    documents = root / "usr/share/doc/ingestd"
    shutil.copytree(ROOT / "config", documents / "examples")
    for page in ("installation.md", "operations.md", "service.md"):
        write(documents / page, (ROOT / "docs" / page).read_text(encoding="utf-8"))
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    entry = CHANGELOG.format(version=version, maintainer=MAINTAINER, time=formatdate(epoch))
    write(documents / "changelog.gz", compressed(entry))
    write(documents / "CHANGELOG.md.gz", compressed((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")))
    write(documents / "copyright", COPYRIGHT.format(home=HOME))
    architecture = output("dpkg", "--print-architecture").strip()
    target = into / f"ingestd_{version}_{architecture}.deb"
    write_control(root, version=version, architecture=architecture, python=python)
    programs = (root / HOME / "bin", root / "DEBIAN")
    for path in root.rglob("*"):
        if not path.is_symlink():
            is_program = path.parent in programs and path.stat().st_mode & 0o100  # wheels mark modules as executable
            path.chmod(0o755 if path.is_dir() or is_program else 0o644)
        os.utime(path, (epoch, epoch), follow_symlinks=False)
    root.chmod(0o755)
    run("dpkg-deb", "--root-owner-group", "-Zzstd", "-z3", "--build", str(root), str(target))
    return target


def install_environment(home: Path, wheel: Path, requirements: Path, python: str) -> None:
    """Make a virtual environment with the locked packages and the wheel. It has no pip, and no paths of this machine."""
    run(python, "-m", "venv", "--without-pip", str(home))
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin/python3"), "install", "--quiet", "--no-compile"]
    run(*pip, "--disable-pip-version-check", "--only-binary", ":all:", "--require-hashes", "-r", str(requirements))
    run(*pip, "--disable-pip-version-check", "--no-deps", "--no-index", str(wheel))
    interpreter = output(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    write(home / "pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n")
    shutil.rmtree(home / "bin")
    (home / "bin").mkdir()
    (home / "bin/python3").symlink_to(f"../../../bin/python{interpreter}")
    shutil.rmtree(home / "include", ignore_errors=True)
    if (home / "lib64").is_symlink():
        (home / "lib64").unlink()
    for compiled in list(home.rglob("__pycache__")):  # pip compiles modules that it imports itself
        shutil.rmtree(compiled)
    for notes in home.rglob("*.dist-info"):
        (notes / "direct_url.json").unlink(missing_ok=True)  # the path of the wheel on this machine
        record = notes / "RECORD"
        kept = [line for line in record.read_text(encoding="utf-8").splitlines(keepends=True) if not left_out(line)]
        record.write_text("".join(kept), encoding="utf-8")


def left_out(line: str) -> bool:
    """Return whether a line of RECORD names a file that the package leaves out."""
    return line.startswith("../../../bin/") or "direct_url.json," in line


def write_control(root: Path, *, version: str, architecture: str, python: str) -> None:
    """Write the control files for dpkg: description, dependencies, checksums, and scripts for installation and removal."""
    number = output(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink()) // 1024
    units = (
        " ".join(sorted(path.name for path in (ROOT / "systemd").glob("*.service") if "@" not in path.name))
        + " 'ingestd@*'"
    )
    sums = output("find", ".", "-type", "f", "-exec", "md5sum", "{}", "+", cwd=root)
    accounts = "\n".join(f"    {line}" for line in accounts_and_folders())
    control = {
        "Package": "ingestd", "Version": version, "Architecture": architecture, "Section": "net", "Priority": "optional",
        "Maintainer": MAINTAINER, "Installed-Size": str(size),
        "Depends": f"adduser, libc6, python3, python{number}", "Recommends": "systemd",
        "Description": "keeps data sinks equal to files, folders and databases\n"
        " ingestd is a daemon that reads files and databases, and sends what changed\n"
        " to a workspace service. workspaced is such a service. Neither is started\n"
        " before it is enabled.",
    }  # fmt: skip
    write(root / "DEBIAN/control", "".join(f"{name}: {value}\n" for name, value in control.items()))
    write(
        root / "DEBIAN/md5sums",
        "".join(sorted((line.replace("  ./", "  ") + "\n" for line in sums.splitlines()), key=path_of)),
    )
    scripts = {"postinst": POSTINST, "prerm": PRERM, "postrm": POSTRM}
    for name, text in scripts.items():
        write(
            root / "DEBIAN" / name,
            text.format(home=HOME, units=units, accounts=accounts) if name != "postrm" else text,
            mode=0o755,
        )


def path_of(line: str) -> str:
    """Return the path in a line of md5sums."""
    return line.partition("  ")[2]


def accounts_and_folders() -> Iterator[str]:
    """Yield shell commands that create the accounts and folders of systemd/, on machines with and without systemd."""
    for line in lines_of("ingestd.sysusers.conf"):
        kind, name, *rest = re.findall(r'"[^"]*"|\S+', line)
        if kind == "g":
            yield f"addgroup --system --quiet {name}"
        elif kind == "m":
            yield f"adduser --quiet {name} {rest[0]}"
        else:
            _, description, home, shell = rest
            yield (
                f"adduser --system --quiet --group --no-create-home --home {home} --shell {shell} --gecos {description} {name}"
            )
    for line in lines_of("ingestd.tmpfiles.conf"):
        kind, path, mode, user, group, *_ = line.split()
        if kind == "d":
            # Only at the first installation, and only if nothing exists there: `install` would follow an existing link.
            is_new = f'[ -z "$2" ] && [ ! -e {path} ] && [ ! -L {path} ]'
            yield f"if {is_new}; then install -d -m {mode} -o {user} -g {group} {path}; fi"
        else:
            yield f"if [ -f {path} ] && [ ! -L {path} ]; then chown {user}:{group} {path}; chmod {mode} {path}; fi"


def lines_of(name: str) -> list[str]:
    """Return the lines of a file in systemd/, without comments and empty lines."""
    text = (ROOT / "systemd" / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def compressed(text: str) -> bytes:
    """Return gzip-compressed text, without a timestamp."""
    return gzip.compress(text.encode(), mtime=0)


def write(path: Path, content: str | bytes, *, mode: int = 0o644) -> None:
    """Write a file, and create its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)


def run(*command: str, cwd: Path | None = None) -> None:
    """Run a command that must succeed."""
    output(*command, cwd=cwd)


def output(*command: str, cwd: Path | None = None) -> str:
    """Return the standard output of a command that must succeed."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
