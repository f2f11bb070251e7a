"""A source repeats every secret of its options: none is on a page, in an output, in the log or in the state."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.daemon_process import Daemon, here
from tests.support.document_server import DocumentServer
from tests.support.listening_daemon import TOKEN, listening_daemon, pipeline, write_listening_configuration

PLUG_IN = """
from pydantic import BaseModel
from ingestd.sdk import Connector, Explains, Partition, SourceBroken, SourceUnavailable

class LeakyConnector(Connector):
    class Options(BaseModel):
        address: str
        key: str
        at: str
        links: list[str]

    def _sentence(self):
        return f"The source {self.options.address} refused the key {self.options.key}."

    def partitions(self):
        if self.options.at == "listing":
            raise SourceUnavailable(self._sentence())
        return [Partition(name="page")]

    def read(self, partition, cursor):
        raise SourceBroken(self._sentence())
        yield

    def explain(self, name, cursor=None):
        return self._sentence()
"""
SECRETS = {name: f"planted-{name}-secret-7351" for name in ("user", "password", "file", "query")}
ADDRESS = f"postgresql://{SECRETS['user']}:{SECRETS['password']}@db.example/pdm"
WITHOUT_SECRETS = "The source postgresql://***@db.example/pdm refused the key ***."


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Daemon, httpx.Client]]:
    folder = tmp_path_factory.mktemp("planted")
    info = folder / "plug-ins" / "leaky_source-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: leaky-source\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ingestd.connectors]\nleaky = leaky_source:LeakyConnector\n")
    (folder / "plug-ins" / "leaky_source.py").write_text(PLUG_IN)
    (folder / "secret").write_text(SECRETS["file"])
    pipelines = []
    for at in ("listing", "reading"):
        link = f"https://plm.example/parts?view=1&sig={SECRETS['query']}"
        source = {"connector": "leaky", "address": ADDRESS, "key": "${file:secret}", "at": at, "links": [link]}
        pipelines.append(pipeline(at, {}, schedule={"every": "1h"}) | {"source": source})
    with DocumentServer() as server:
        server.workspace("Bench")
        listen = {"address": "127.0.0.1:0", "token": TOKEN}
        config = write_listening_configuration(folder, server.url, pipelines, listen)
        with listening_daemon(folder, config) as (daemon, client):
            client.auth = ("anna", TOKEN)
            daemon.wait_for("source_away")
            daemon.wait_for("partition_rejected")
            yield folder, daemon, client


def check(text: str, *, shows: bool = False) -> None:
    """Fail if a secret is in the text. ``shows``: the sentence of the source is expected, so that the check can fail."""
    for secret in SECRETS.values():
        assert secret not in text
    if shows:
        assert WITHOUT_SECRETS in text


def test_no_page_shows_a_secret(scene: tuple[Path, Daemon, httpx.Client]) -> None:
    _, _, client = scene
    for path in ("/", "/pipelines/listing"):
        check(client.get(path).raise_for_status().text, shows=True)
    for path in (
        "/pipelines/reading",
        "/rejected",
        "/rejected.csv",
        "/files?name=page",
        "/trace?key=page",
        "/metrics",
        "/held",
        "/drift",
        "/configuration",
    ):
        check(client.get(path).text)
    with client.stream("GET", "/live") as response:
        check(next(one for one in response.iter_text() if "db.example" in one), shows=True)


def test_a_secret_in_an_address_of_a_page_is_not_repeated(scene: tuple[Path, Daemon, httpx.Client]) -> None:
    _, _, client = scene
    page = client.get("/rejected", params={"file": ADDRESS, "key": SECRETS["file"]}).raise_for_status().text
    check(page)
    assert not re.search("planted-(user|password)", page), "also not with its punctuation quoted"


@pytest.mark.parametrize(
    "words", [("status",), ("status", "--json"), ("why", "page"), ("why", "page", "--json"), ("top", "--once")]
)
def test_no_command_prints_a_secret_while_the_daemon_runs(
    words: tuple[str, ...], scene: tuple[Path, Daemon, httpx.Client]
) -> None:
    folder, _, _ = scene
    run = here(folder, *words)
    check(run.stdout + run.stderr, shows=words[0] in {"status", "why"})


def test_the_log_and_the_state_have_no_secret(scene: tuple[Path, Daemon, httpx.Client]) -> None:
    folder, daemon, _ = scene
    check("\n".join(daemon.lines), shows=True)
    assert any(json.loads(line)["event"] == "source_away" for line in daemon.lines if line.startswith("{"))
    state = b"".join(path.read_bytes() for path in (folder / "var").iterdir() if path.is_file())
    check(state.decode("utf-8", "replace"))
