"""Record state files of former schemas, written by the programs of that time: `python scripts/record_state_files.py FOLDER`.

For each commit of `RECORDED` the script unpacks the tree of that commit, and runs its programs on one scene: a service with a
workspace, a file with a row that is rejected, a sync, and a second sync without the service, which leaves changes pending. FOLDER
gets one archive for each commit, with the state file, the folder of the service and the configuration. The address of the
service in the configuration is `ADDRESS`, where no service listens.

The archives are in tests/golden/upgrade; tests/process/test_upgrade.py opens them with today's programs. Run the script
again only to add a commit: before a migration is added, record the last commit without it.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from contextlib import closing
from pathlib import Path

RECORDED = {
    "state-0001-service-0001": "5ee8ee38efa8e34cf48d3a71b020f7225a274990",
    "state-0001-service-0005": "7a976c834c1d840806535c8f417fa2e9526cee70",
    "state-0002-service-0006": "f9e863320bc4a124d79b36260edc940fc9351f0b",
    "state-0002-service-0008": "a197f4e2a6bb6cad65229d170fc274ac4a059dba",
    "state-0003-service-0008": "c7834ce5ffe449305a831cd469bb13f214d16cb7",
    "state-0004-service-0008": "1cff0bcddfc05e44b24ea8441e30d828625b85dd",
    "state-0007-service-0008": "a39f7c2e4343d5d6df75117a957748bc3cbdac5d",
    "state-0007-service-0010": "fccc6917750040588a7ddb7e61da779b2c783ace",
    "state-0008-service-0010": "73e5744c5c8b6f2f9b5b6a3d89e11ad20cee9f16",
    "state-0011-service-0010": "0d447c84ec1378b93f739174916073d8291d2798",
    "state-0012-service-0010": "70a930f3bdc2abfa3250db18b7b565f6dae6e3f8",
    "state-0013-service-0010": "abd23e2f90ca8ac2873712705f6200a5184d41a2",
    "state-0014-service-0011": "e53b501428034c1038c3ec482a76bbfe162ffade",
    "state-0015-service-0011": "fc35ae9526814a2e75a67a1338b626ec6dfcfb58",
    "state-0016-service-0012": "ead3c73bdccb7f9a75f981142e193bd9cb492eaf",
}
"""Commits by the last migrations of both programs: the last commit with them. Migrations that came together have one commit."""

ADDRESS = "http://127.0.0.1:9"
CONFIGURATION = """\
service: {{url: "{address}", api_key: "${{env:INGESTD_API_KEY}}"}}
state: ingestd.db
pipelines:
  - name: masses
    source: {{connector: directory, path: drop, pattern: "*.csv", settle_seconds: 0}}
    sink: {{workspace: Rover, label: Masses}}
    entries: {{key: "{{part}}.mass", value: "{{mass}}"}}
"""
FIRST = "part,mass\n00417,0.10\n00418,2.50\n00419,7\n,9.99\n00420,1e3\n"
SECOND = FIRST.replace("2.50", "2.75").replace("00420,1e3\n", "00421,12\n00420,1e3\n")
"""Changes one value and adds an entry; both are pending in the recorded state."""
SECONDS = 60
WITH_REJECTIONS = 3
"""Exit code of a sync that delivered everything but what was rejected."""


def main(arguments: list[str]) -> int:
    """Record the archives that are absent; 0 on success."""
    parser = argparse.ArgumentParser(description="Record state files of former schemas.")
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, commit in RECORDED.items():
        archive = folder / f"{name}.tar.xz"
        if not archive.exists():
            with tempfile.TemporaryDirectory(prefix="ingestd-state-") as work:
                archive.write_bytes(record(Path(work), name, commit))
            print(f"{archive}  {archive.stat().st_size} bytes", flush=True)
    return 0


def record(work: Path, name: str, commit: str) -> bytes:
    """Run the scene with the programs of a commit; return the archive."""
    tree, scene = work / "tree", work / "scene"
    packed = subprocess.run(["git", "archive", commit], capture_output=True, check=True).stdout  # noqa: S607
    with tarfile.open(fileobj=io.BytesIO(packed)) as opened:
        opened.extractall(tree, filter="data")
    (scene / "drop").mkdir(parents=True)
    (scene / "drop" / "parts.csv").write_text(FIRST, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tree), "TZ": "UTC"}
    key = run(environment, scene, "workspaced", "keys", "create", "recorder", "--role", "owner", "--data", "service")
    environment["INGESTD_API_KEY"] = key.strip()
    serve = [sys.executable, "-m", "workspaced", "serve", "--data", "service", "--port", "0"]
    with subprocess.Popen(
        serve, cwd=scene, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as service:
        try:
            if service.stdout is None:
                raise AssertionError("the service was started with a pipe")
            address = service.stdout.readline().strip()
            create_workspace(address, key.strip())
            (scene / "ingestd.yaml").write_text(CONFIGURATION.format(address=address), encoding="utf-8")
            print(run(environment, scene, "ingestd", "-c", "ingestd.yaml", "sync").strip().splitlines()[-1])
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(SECONDS)
    (scene / "drop" / "parts.csv").write_text(SECOND, encoding="utf-8")
    leave_pending(environment, scene)
    (scene / "ingestd.yaml").write_text(CONFIGURATION.format(address=ADDRESS), encoding="utf-8")
    check_schema(scene, name)
    return pack(scene)


def run(environment: dict[str, str], scene: Path, program: str, *words: str) -> str:
    """Return the standard output of a program, which must succeed."""
    command = [sys.executable, "-m", program, *words]
    done = subprocess.run(
        command, cwd=scene, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    if done.returncode not in {0, WITH_REJECTIONS}:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def create_workspace(address: str, key: str) -> None:
    """Create the workspace of the scene."""
    body = json.dumps({"label": "Rover"}).encode()
    headers = {"x-api-key": key, "Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/v1/workspace", body, headers, method="POST")  # noqa: S310 - of this script
    urllib.request.urlopen(request, timeout=SECONDS).close()  # noqa: S310


def leave_pending(environment: dict[str, str], scene: Path) -> None:
    """Read the changed file while no service runs, until its changes are in the state file."""
    sync = [sys.executable, "-m", "ingestd", "-c", "ingestd.yaml", "sync"]
    with subprocess.Popen(
        sync, cwd=scene, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as daemon:
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(SECONDS)


def check_schema(scene: Path, name: str) -> None:
    """Check that both files have the migrations that the name of the archive promises."""
    import sqlite3  # noqa: PLC0415 - only here

    expected = name.split("-")
    for path, number in ((scene / "ingestd.db", expected[1]), (next((scene / "service").glob("*.db")), expected[3])):
        with closing(sqlite3.connect(path)) as opened:
            (version,) = opened.execute("PRAGMA user_version").fetchone()
        if version != int(number):
            raise SystemExit(f"{path.name} of {name} has schema {version} instead of {number}.")


def pack(scene: Path) -> bytes:
    """Return the scene as tar.xz, without owners and times."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as packed:
        for path in sorted(scene.rglob("*")):
            entry = packed.gettarinfo(path, str(path.relative_to(scene)))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = 0
            with path.open("rb") if entry.isreg() else io.BytesIO() as content:
                packed.addfile(entry, content)
    return lzma.compress(plain.getvalue(), preset=9 | lzma.PRESET_EXTREME)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
