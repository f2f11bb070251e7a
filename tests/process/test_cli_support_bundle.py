"""`ingestd support-bundle`: what it contains, and that no planted secret and no value is in it."""

from __future__ import annotations

import json
import stat
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.process.test_cli_json import WORDS
from tests.support.daemon_process import environment, here
from tests.support.document_server import DocumentServer
from tests.support.engineering_folder import Folder

PLUG_IN = """
from pydantic import BaseModel
from ingestd.sdk import Connector, Partition, Reject, pack

class WebConnector(Connector):
    class Options(BaseModel):
        address: str
        headers: dict[str, str]
        queries: list[str]
        pin: int
        pages: int = 3

    def partitions(self):
        return [Partition(name="page")]

    def read(self, partition, cursor):
        if cursor is None:
            reject = Reject(position=2, reason="'m' is 'planted-reason-3817', and 'planted-field' needs a number.")
            yield pack([{"n": "planted-key-3817", "v": "planted-value-3817"}], cursor={}, rejects=(reject,), last=True)
"""
PLACES = ("environment", "file", "credential", "user", "password", "query", "header")
SECRETS = {place: f"planted-{place}-secret-7351" for place in PLACES}
PIN = 73517351
VALUES = ("planted-key-3817", "planted-value-3817", "planted-reason-3817", "planted-field", "planted-log-3817")
LOG = [
    {"timestamp": "2026-11-23T06:00:00.000Z", "level": "info", "event": "entries_delivered", "sink": "planted-log-3817",
     "pipelines": ["web"], "entries": 17, "operation": "planted-log-3817"},
    {"timestamp": "2026-11-23T06:00:01.000Z", "level": "error", "event": "command_failed",
     "traceback": 'Traceback:\n  File "/opt/ingestd/lane.py", line 12, in run\nRuntimeError: planted-log-3817'},
    {"event": "planted-log-3817", "planted-log-3817": 1},
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """A synced pipeline of a plug-in, with a secret in every place and values in sink, rejections and log."""
    environment(tmp_path)  # creates the folder of plug-ins
    info = tmp_path / "plug-ins" / "web_source-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: web-source\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ingestd.connectors]\nweb = web_source:WebConnector\n")
    (tmp_path / "plug-ins" / "web_source.py").write_text(PLUG_IN)
    (tmp_path / "secret").write_text(SECRETS["file"])
    (tmp_path / "credentials").mkdir()
    (tmp_path / "credentials" / "web").write_text(SECRETS["credential"])
    (tmp_path / "daemon.log").write_text("".join(f"{json.dumps(one)}\n" for one in LOG) + "Fatal: planted-log-3817\n")
    with DocumentServer(api_key=SECRETS["environment"]) as server:
        server.workspace("Bench")
        folder = Folder(tmp_path, server, top="log: {file: daemon.log}")
        source = {
            "connector": "web",
            "address": f"https://{SECRETS['user']}:{SECRETS['password']}@web.example/?token={SECRETS['query']}",
            "headers": {"Authorization": "${file:secret}", "X-Other": SECRETS["header"]},
            "queries": ["${credential:web}"],
            "pin": PIN,
        }
        address = f"postgresql://{SECRETS['user']}:{SECRETS['password']}@127.0.0.1:9/pdm"
        pdm = {"connector": "database", "url": address, "table": "parts"}
        pipelines = [
            {
                "name": name,
                "source": one,
                "schedule": {"every": "1h"},
                "sink": {"workspace": "Bench", "label": name},
                "entries": {"key": "{n}", "value": "{v}"},
            }
            for name, one in (("web", source), ("budget", pdm))
        ]
        service = {"url": server.url, "api_key": "${env:PLANTED}"}
        text = {"service": service, "state": "var/ingestd.db", "log": {"file": "daemon.log"}, "pipelines": pipelines}
        folder.config.write_text(json.dumps(text))
        synced = run(folder, "sync", "web")
        assert synced.returncode == 3, synced.stderr
        yield folder


def run(folder: Folder, *words: str) -> subprocess.CompletedProcess[str]:
    credentials = str(folder.path / "credentials")
    return here(folder.path, *words, PLANTED=SECRETS["environment"], CREDENTIALS_DIRECTORY=credentials)


def unpacked(path: Path) -> dict[str, Any]:
    with tarfile.open(path) as tar:
        members = [(Path(one.name).name, tar.extractfile(one)) for one in tar.getmembers()]
        return {name: file.read().decode() for name, file in members if file is not None}


def test_no_planted_secret_and_no_value_is_in_the_bundle(folder: Folder) -> None:
    done = run(folder, "support-bundle", "bundle.tar.gz")
    assert (done.returncode, done.stderr) == (0, "")
    bundle = folder.path / "bundle.tar.gz"
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    files = unpacked(bundle)
    everything = "".join([*files, *files.values()])
    for planted in (*SECRETS.values(), *VALUES, str(PIN), "planted"):
        assert planted not in everything
    assert all("failed" not in json.loads(text) for name, text in files.items() if name.endswith(".json"))


def test_the_bundle_has_what_a_report_needs(folder: Folder) -> None:
    assert run(folder, "support-bundle", "bundle.tar.gz").returncode == 0
    found = {
        name: json.loads(text) for name, text in unpacked(folder.path / "bundle.tar.gz").items() if name[-1] == "n"
    }
    assert set(found) == {
        f"{name}.json" for name in ("versions", "configuration", "doctor", "status", "state", "rejected", "log", "unit")
    }
    assert found["versions.json"]["connectors"]["web"] == "web-source 1.0"
    assert "polars" in found["versions.json"]["libraries"]
    web, _ = found["configuration.json"]["settings"]["pipelines"]
    assert (web["name"], web["source"]["connector"], web["source"]["options"]["pages"]) == ("web", "web", 3)
    assert web["source"]["options"]["headers"] == "<2 members>"
    assert found["configuration.json"]["settings"]["service"]["api_key"] == "<secret>"
    steps = {(one["subject"], one["step"]): one for one in found["doctor.json"]}
    assert steps["service", "workspace"]["outcome"] == "passed"
    assert "Python" in steps["machine", "versions"]["sentence"]
    assert found["status.json"]["rejected"] == 1
    assert found["state.json"]["rows"]["rejected"] == 1
    (counted,) = found["rejected.json"]["by_reason"]
    assert (counted["pipeline"], counted["reason"], counted["rejections"]) == ("web", "… is … and … needs a number", 1)
    delivered, failed, unknown, raw = found["log.json"]
    assert (delivered["event"], delivered["entries"], failed["traceback"]) == (
        "entries_delivered",
        17,
        ["lane.py:12 run"],
    )
    assert (unknown["event"], raw) == ("<text>", {"event": "<text>"})


def test_no_command_prints_a_secret_and_the_state_file_has_none(folder: Folder) -> None:
    outputs = []
    for name, words in WORDS.items():
        if name != "test":  # it needs a case file
            done = run(folder, *name.split(), *(word.replace("budget", "web") for word in words))
            outputs.append(done.stdout + done.stderr)
    text = "".join(outputs)
    assert "web" in text
    state = b"".join(path.read_bytes() for path in (folder.path / "var").iterdir() if path.is_file())
    assert b"planted-value-3817" in state, "the search finds what is there"
    for secret in SECRETS.values():
        assert secret not in text
        assert secret.encode() not in state


def test_a_configuration_with_mistakes_gives_their_places_and_no_text(tmp_path: Path) -> None:
    config = tmp_path / "ingestd.yaml"
    config.write_text(f"service: {{url: http://127.0.0.1:9, apikey: {SECRETS['file']}}}\nstate: s.db\n")
    done = here(tmp_path, "support-bundle", "b.tar.gz")
    assert (done.returncode, done.stderr) == (0, "")
    files = unpacked(tmp_path / "b.tar.gz")
    assert {one["line"] for one in json.loads(files["configuration.json"])["mistakes"]} >= {1}
    assert SECRETS["file"] not in "".join(files.values())
    refused = here(tmp_path, "support-bundle", "missing/b.tar.gz")
    assert (refused.returncode, refused.stdout) == (73, "")


def test_an_existing_file_is_not_replaced(tmp_path: Path) -> None:
    config = tmp_path / "ingestd.yaml"
    config.write_text("service: {url: http://127.0.0.1:9}\n", encoding="utf-8")
    done = here(tmp_path, "support-bundle", "ingestd.yaml")
    assert (done.returncode, done.stdout) == (73, "")
    assert done.stderr == "ingestd.yaml exists, and is not overwritten. Name another file.\n"
    assert config.read_text(encoding="utf-8") == "service: {url: http://127.0.0.1:9}\n"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["ingestd.yaml"]
