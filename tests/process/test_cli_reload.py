"""`ingestd reload`, SIGHUP and an API key that is changed in its file."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon_process import ingestd, running_daemon, write_configuration
from tests.support.document_server import DocumentServer


@pytest.fixture
def server() -> Iterator[DocumentServer]:
    with DocumentServer() as running:
        running.workspace("Bench")
        yield running


def with_key_in_a_file(folder: Path, server: DocumentServer, key: str) -> Path:
    config = write_configuration(folder, server.url, {"upto": 3})
    settings = json.loads(config.read_text())
    settings["service"]["api_key"] = "${file:key}"
    config.write_text(json.dumps(settings))
    (folder / "key").write_text(key)
    return config


@pytest.mark.parametrize("by", ["command", "SIGHUP", "nothing"])
def test_a_corrected_key_is_used_immediately_after_reload_and_at_the_next_attempt_without_it(
    tmp_path: Path, server: DocumentServer, by: str
) -> None:
    server.api_key = "the-new-key"
    config = with_key_in_a_file(tmp_path, server, "the-old-key")
    with running_daemon(tmp_path, "run", "--log-level", "debug", "-c", str(config)) as (daemon, _):
        daemon.wait_for("delivery_paused")
        (tmp_path / "key").write_text("the-new-key")
        if by == "command":
            run = ingestd(tmp_path, "reload", "-c", str(config))
            assert (run.returncode, run.stderr) == (0, "")
            assert "The new API key is in use" in run.stdout
        elif by == "SIGHUP":
            daemon.process.send_signal(signal.SIGHUP)
            assert daemon.wait_for("configuration_reloaded")["by"] == "SIGHUP"
        daemon.wait_for("partition_settled")
        assert daemon.stop() == 0
        text = "\n".join(daemon.lines)
        assert "the-new-key" not in text
        assert "the-old-key" not in text
    assert len(server.values("Sink 0")) == 3


def test_a_configuration_with_mistakes_changes_nothing_and_a_different_one_requires_a_restart(
    tmp_path: Path, server: DocumentServer
) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 3})
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
        manager.wait_for("READY")
        good = config.read_text()
        config.write_text(good.replace("test-key", "${file:nowhere}"))
        wrong = ingestd(tmp_path, "reload", "-c", str(config))
        assert wrong.returncode == 78
        assert "service.api_key: There is no file" in wrong.stderr
        assert "Nothing was changed" in wrong.stderr
        assert daemon.wait_for("reload_refused")["level"] == "error"
        write_configuration(tmp_path, server.url, {"upto": 3}, {"upto": 2})
        other = ingestd(tmp_path, "reload", "-c", str(config))
        assert other.returncode == 0
        assert "These changes need a restart of the daemon: pipeline p1." in other.stdout
        assert daemon.stop() == 0


def test_reload_without_a_daemon_is_an_error(tmp_path: Path, server: DocumentServer) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 3})
    run = ingestd(tmp_path, "reload", "-c", str(config))
    assert run.returncode == 75
    assert "No daemon runs" in run.stderr
