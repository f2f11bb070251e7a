"""Commands without secrets, with an unusable state file, and with undecodable names: all report sentences."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ingestd.core.errors import MirrorError
from ingestd.daemon.control.address import short_address, socket_file
from ingestd.mirror.sqlite import Observer, SqliteMirror, damage_named
from tests.contract.mirror_deliverable import SINK
from tests.support.daemon_process import environment, here, running_daemon, write_configuration
from tests.support.desired_entries import desire_all
from tests.support.document_server import DocumentServer

LOOKING = (
    ["status"], ["trace", "0.1"], ["why", "numbers"], ["rejected", "list"], ["rejected", "export"], ["drift"], ["check"],
)  # fmt: skip

ROOT = Path(__file__).parents[2]
WITHOUT_RIGHTS = """\
import json, pathlib, sys
from tests.process.test_cli_unusable_state import results
print(json.dumps(results(pathlib.Path(sys.argv[1]))))
"""


def results(folder: Path) -> list[tuple[list[str], int, str]]:
    """Return the exit code and the output of each command."""
    found = [(verb, here(folder, *verb)) for verb in (*LOOKING, ["run"], ["sync"])]
    return [(verb, run.returncode, run.stdout + run.stderr) for verb, run in found]


def without_rights(folder: Path) -> list[tuple[list[str], int, str]]:
    rights = "-dac_override,-dac_read_search"
    prefix = ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}"]
    done = subprocess.run(
        [*prefix, sys.executable, "-c", WITHOUT_RIGHTS, str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [tuple(one) for one in json.loads(done.stdout)]


def test_commands_that_read_the_state_need_no_secret(tmp_path: Path, server: DocumentServer) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 3})
    assert here(tmp_path, "sync").returncode == 0
    settings = json.loads(config.read_text())
    settings["service"]["api_key"] = "${credential:api_key}"
    settings["pipelines"].append({
        "name": "pdm", "schedule": {"every": "1h"},
        "source": {"connector": "database", "url": "${credential:pdm}", "mode": "snapshot", "query": "SELECT 1"},
        "entries": {"key": "{a}", "value": "{b}"}, "sink": {"workspace": "Bench", "label": "PDM"},
    })  # fmt: skip
    config.write_text(json.dumps(settings))
    for verb, code in ((["status"], 0), (["trace", "0.1"], 0), (["why", "numbers"], 0), (["rejected", "list"], 0)):
        run = here(tmp_path, *verb)
        assert (run.returncode, run.stderr) == (code, ""), verb
    # A command that needs secrets names each unresolved placeholder and its complete setting.
    for verb in (["sync"], ["drift"], ["check"]):
        run = here(tmp_path, *verb)
        assert run.returncode == 78
        assert "service.api_key: The credential 'api_key' can't be read" in run.stderr
        assert "pipelines[1].source.url: The credential 'pdm' can't be read" in run.stderr


@pytest.mark.parametrize("kind", ["damaged", "folder", "not a folder", "unwritable"])
def test_an_unusable_state_file_is_reported_by_every_command(tmp_path: Path, server: DocumentServer, kind: str) -> None:
    write_configuration(tmp_path, server.url, {"upto": 3})
    state = tmp_path / "var" / "ingestd.db"
    if kind == "not a folder":
        state.parent.write_text("")
    elif kind == "folder":
        state.mkdir(parents=True)
    else:
        assert here(tmp_path, "sync").returncode == 0
    if kind == "damaged":
        content = bytearray(state.read_bytes())
        content[:4096] = bytes(reversed(content[:4096]))
        state.write_bytes(content)
    if kind == "unwritable":
        state.parent.chmod(0o555)
        state.chmod(0o444)
    failed = 0
    # Root may write anywhere, unless it drops this capability.
    for verb, code, said in (
        without_rights(tmp_path) if kind == "unwritable" and os.geteuid() == 0 else results(tmp_path)
    ):
        assert "Traceback" not in said, (verb, said)
        assert "unexpected error" not in said, (verb, said)
        if code == 74:
            failed += 1
            assert str(state.parent) in said
    assert failed >= (3 if kind == "unwritable" else 8)
    state.parent.chmod(0o755)


def test_flipped_bytes_are_reported_as_damage_or_are_harmless(tmp_path: Path) -> None:
    """Flip bytes over the whole file, one after the other: reading raises only errors of the mirror."""
    path = tmp_path / "ingestd.db"
    mirror = SqliteMirror.open(path)
    desire_all(mirror, SINK, {f"K-{number}": (str(number), "text") for number in range(50)})
    mirror.close()
    whole = path.read_bytes()
    found = 0
    for position in range(0, len(whole), 997):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        try:
            with closing(SqliteMirror.observe(path)) as observer, damage_named(path):
                look(observer)
        except MirrorError:
            found += 1
    assert found > 0


def look(observer: Observer) -> None:
    observer.pending()
    observer.rejected()
    observer.sinks()
    observer.pipelines()
    observer.rejections(limit=20)
    observer.origins("K-7")
    observer.failed_parts()


def test_why_of_an_undecodable_name_is_a_sentence(tmp_path: Path, server: DocumentServer) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 3})
    settings = json.loads(config.read_text())
    settings["pipelines"][0]["source"] = {"connector": "directory", "path": "drop", "settle_seconds": 0}
    config.write_text(json.dumps(settings))
    name = os.fsencode(tmp_path / "drop") + b"/m\xe4rz.csv"
    (tmp_path / "drop").mkdir()
    Path(os.fsdecode(name)).write_text("n\n1\n")
    command: list[str | bytes] = [sys.executable, "-m", "ingestd", "why", name, "-c", str(config)]
    run = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, check=False)
    assert b"Traceback" not in run.stderr, run.stderr
    assert "m\\xe4rz.csv" in (run.stdout + run.stderr).decode()


@pytest.mark.parametrize("end", ["killed", "gone before the response"])
def test_why_reads_the_state_itself_if_the_daemon_has_just_died(
    tmp_path: Path, server: DocumentServer, end: str
) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 3})
    state = tmp_path / "var" / "ingestd.db"
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
        manager.wait_for("READY")
        daemon.wait_for("partition_acknowledged")
        daemon.process.kill()
        daemon.ended()
    assert socket_file(state).exists()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    command = [sys.executable, "-m", "ingestd", "why", "numbers", "-c", str(config)]
    if end != "killed":
        socket_file(state).unlink()
        with short_address(socket_file(state)) as address:
            listening.bind(address)
        listening.listen()
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as asking:
        if end != "killed":
            taken, _ = listening.accept()
            taken.close()
        output, complaint = asking.communicate(timeout=60)
    listening.close()
    assert (asking.returncode, complaint) == (0, "")
    assert "numbers was found by pipeline p0" in output
