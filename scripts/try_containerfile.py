"""Test the Containerfile in a new root folder: perform its steps, and run the image's programs there: `make package-test`.

Instead of the base image, the root folder has copies of this machine's Debian packages. Locked packages are downloaded first,
because pip may not use the network in the root folder. This program needs root.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from scripts.root_folder import expect, make_root, output
from scripts.try_package import CONFIGURATION

ROOT = Path(__file__).parents[1]
BASE = ["python3", "python3-venv", "passwd"]
"""The packages of the base image that the steps need."""
_READY_SECONDS = 60


@dataclass(slots=True)
class Image:
    """The state of a build: the root folder, and the values that instructions set for later steps and for containers."""

    root: Path
    environment: dict[str, str]
    user: str = "root"
    folder: str = "/"
    health: list[str] = field(default_factory=list)
    start: list[str] = field(default_factory=list)

    def perform(self, instruction: str, text: str) -> None:
        """Perform one step of a Containerfile."""
        if instruction == "COPY":
            *sources, target = text.split()
            for path in (path for source in sources for path in ROOT.glob(source)):
                shutil.copy2(path, self.root / target.lstrip("/"))
        elif instruction == "RUN":
            expect(self.run("sh", "-c", text).returncode == 0, f"RUN {text}")
        else:
            self.set(instruction, text)

    def set(self, instruction: str, text: str) -> None:
        """Store the value that an instruction sets for later steps and for containers."""
        if instruction == "ENV":
            name, value = text.split("=", 1)
            self.environment[name] = re.sub(r"\$(\w+)", lambda found: self.environment[found[1]], value)
        elif instruction == "USER":
            self.user = text
        elif instruction == "WORKDIR":
            self.folder = text
        elif instruction == "HEALTHCHECK":
            self.health = json.loads(text[text.index("CMD") + 3 :])
        elif instruction in {"ENTRYPOINT", "CMD"}:
            self.start += json.loads(text)
        elif instruction not in {"FROM", "VOLUME"}:
            raise SystemExit(f"The Containerfile has the instruction {instruction}, which this program does not know.")

    def command(self, *words: str) -> list[str]:
        """Return the command that runs ``words`` in the root folder, in the working folder and as the user of the image."""
        inner = f"cd {shlex.quote(self.folder)} && exec {shlex.join(words)}"
        return ["chroot", f"--userspec={self.user}:{self.user}", str(self.root), "sh", "-c", inner]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command, and print its output if it fails."""
        done = subprocess.run(
            self.command(*words), env=self.environment, capture_output=True, text=True, timeout=600, check=False
        )
        if done.returncode:
            print(done.stdout[-2000:], done.stderr[-2000:])
        return done


def main() -> int:
    """Perform the steps and use the image; return 0 if every check succeeds."""
    with tempfile.TemporaryDirectory(prefix="ingestd-image-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        make_root(root, BASE)
        (root / "usr/bin/python").symlink_to("python3")
        wheels = root / "wheels"
        pip = ["/usr/bin/python3", "-m", "venv", str(root / "pip")]
        output(*pip)
        requirements = str(ROOT / "dist/requirements-ingestd.txt")
        output(
            str(root / "pip/bin/pip"), "download", "--quiet", "--require-hashes", "--requirement", requirements, "--dest",
            str(wheels),
        )  # fmt: skip
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/tmp"}  # noqa: S108 - in the root
        image = Image(root, environment | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels"})
        for instruction, text in steps((ROOT / "Containerfile").read_text(encoding="utf-8")):
            image.perform(instruction, text)
        use(image)
    return 0


def steps(text: str) -> list[tuple[str, str]]:
    """Return (instruction, arguments) of each step of a Containerfile."""
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines if line.strip() and not line.startswith("#")]


def use(image: Image) -> None:
    """Check the image as a container: its user, its programs, and its health check with and without the daemon."""
    expect(image.user == "ingestd", "the programs do not run as root")
    for program in ("ingestd", "workspaced"):
        expect(image.run(program, "--version").returncode == 0, f"{program} starts")
    (image.root / "srv/ingestd/drop").mkdir(parents=True)
    (image.root / "etc/ingestd/ingestd.yaml").write_text(CONFIGURATION, encoding="utf-8")
    (image.root / "etc/ingestd/ingestd.yaml").chmod(0o644)
    expect(image.run(*image.health).returncode != 0, "without the daemon, the image is not healthy")
    log = image.root / "tmp/daemon.log"
    (image.root / "proc").mkdir(exist_ok=True)
    output("mount", "-t", "proc", "proc", str(image.root / "proc"))  # the daemon needs /proc, and a container has it
    try:
        run_daemon(image, log)
    finally:
        output("umount", str(image.root / "proc"))


def run_daemon(image: Image, log: Path) -> None:
    """Run the image's command until the health check succeeds, and terminate it."""
    with log.open("w") as errors:
        daemon = subprocess.Popen(image.command(*image.start), env=image.environment, stdout=errors, stderr=errors)
    try:
        until = time.monotonic() + _READY_SECONDS
        while image.run(*image.health).returncode and daemon.poll() is None and time.monotonic() < until:
            time.sleep(0.5)  # a container engine also repeats the health check
        is_healthy = image.run(*image.health).returncode == 0
        expect(is_healthy, "with the daemon, the image is healthy" if is_healthy else log.read_text())
    finally:
        daemon.terminate()
        daemon.wait(30)
    expect(daemon.returncode == 0, "the daemon ends cleanly at SIGTERM")


if __name__ == "__main__":
    sys.exit(main())
