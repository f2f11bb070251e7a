"""`ingestd reload` and SIGHUP: what changed in the configuration is used, and the rest of the daemon does not notice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon_process import Daemon, environment, here, running_daemon, write_configuration
from tests.support.document_server import DocumentServer


def change(config: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Edit the settings of a configuration file."""
    settings = json.loads(config.read_text())
    edit(settings)
    new = config.with_suffix(".new")
    new.write_text(json.dumps(settings))
    new.replace(config)  # a reload may read the file at any time


def count_up_to(number: int, settings: dict[str, Any]) -> None:
    settings["pipelines"][0]["source"]["upto"] = number


def gated(folder: Path) -> Path:
    """Create a FIFO at which a source waits until `open_gate`."""
    gate = folder / "gate"
    os.mkfifo(gate)
    return gate


def open_gate(gate: Path) -> None:
    gate.write_bytes(b"")


def reload_in_background(folder: Path, config: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ingestd", "reload", "-c", str(config)],
        cwd=folder, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def readings(daemon: Daemon, pipeline: str) -> int:
    return sum(event.get("event") == "partition_read" and event["pipeline"] == pipeline for event in daemon.events)


@pytest.mark.parametrize("by", ["command", "SIGHUP"])
def test_a_new_key_in_the_configuration_is_used_after_a_reload(tmp_path: Path, server: DocumentServer, by: str) -> None:
    # The key is in the file itself, which only a reload reads again. The daemon itself reads ${file:…} again after a 401.
    server.api_key = "the-new-key"
    config = write_configuration(tmp_path, server.url, {"upto": 3})
    change(config, lambda settings: settings["service"].update(api_key="the-old-key"))
    with running_daemon(tmp_path, "run", "--log-level", "debug", "-c", str(config)) as (daemon, _):
        daemon.wait_for("delivery_paused")
        change(config, lambda settings: settings["service"].update(api_key="the-new-key"))
        if by == "command":
            run = here(tmp_path, "reload")
            assert (run.returncode, run.stderr) == (0, "")
            assert "The new API key is in use" in run.stdout
        else:
            daemon.process.send_signal(signal.SIGHUP)
        assert daemon.wait_for("configuration_reloaded")["key_changed"]
        daemon.wait_for("partition_acknowledged")
        assert daemon.stop() == 0
        text = "\n".join(daemon.lines)
        assert "the-new-key" not in text
        assert "the-old-key" not in text
        assert readings(daemon, "p0") == 1  # another key of the service is no reason to read a source
    assert len(server.values("Sink 0")) == 3


def test_a_key_that_changes_in_its_file_is_used_without_a_reload(tmp_path: Path, server: DocumentServer) -> None:
    server.api_key = "the-new-key"
    config = write_configuration(tmp_path, server.url, {"upto": 3})
    change(config, lambda settings: settings["service"].update(api_key="${file:key}"))
    (tmp_path / "key").write_text("the-old-key")
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, _):
        daemon.wait_for("delivery_paused")
        (tmp_path / "key").write_text("the-new-key")
        daemon.wait_for("partition_acknowledged")
        assert daemon.stop() == 0


def test_pipelines_are_added_removed_renamed_and_restarted_and_the_others_do_not_notice(
    tmp_path: Path, server: DocumentServer
) -> None:
    gate = gated(tmp_path)
    config = write_configuration(
        tmp_path, server.url, {"gate": str(gate)}, {"upto": 1}, {"upto": 2}, {"upto": 3, "label": "x"}
    )

    def edit(settings: dict[str, Any]) -> None:
        waiting, _removed, changed, renamed = settings["pipelines"]
        changed["source"]["upto"] = 5
        renamed["name"] = "renamed"
        added = json.loads(json.dumps(changed)) | {"name": "added", "sink": {"workspace": "Bench", "label": "Sink 4"}}
        settings["pipelines"] = [waiting, changed, renamed, added]

    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
        for name in ("p1", "p2", "p3"):
            daemon.wait_for("partition_acknowledged", pipeline=name)
        daemon.wait_for("source_notice", pipeline="p0")
        change(config, edit)
        run = here(tmp_path, "reload")
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout.splitlines() == [
            "Added: added",
            "Removed: p1",
            "Renamed: p3 to renamed",
            "Restarted: p2",
            "Unchanged: 1 pipeline",
            "Deliveries that wait are tried again now.",
        ]
        event = daemon.wait_for("configuration_reloaded")
        assert (event["added"], event["removed"], event["restarted"]) == (["added"], ["p1"], ["p2"])
        assert (event["renamed"], event["unchanged"]) == (["p3 to renamed"], 1)
        daemon.wait_for("partition_acknowledged", pipeline="added")
        daemon.wait_for("partition_acknowledged", pipeline="p2", nth=2)
        # The run of the unchanged pipeline continues where it was.
        open_gate(gate)
        daemon.wait_for("partition_acknowledged", pipeline="p0")
        assert [readings(daemon, name) for name in ("p0", "p1", "renamed", "added")] == [1, 1, 0, 1]
        manager.wait_for("STATUS", "4 pipelines, 0 pending")
        status = here(tmp_path, "status").stdout
        assert daemon.stop() == 0
    assert "renamed" in status
    assert [len(server.values(f"Sink {number}")) for number in range(5)] == [3, 1, 5, 3, 5]


def test_changed_settings_of_the_service_are_used_by_the_lanes(tmp_path: Path, server: DocumentServer) -> None:
    config = write_configuration(tmp_path, "http://127.0.0.1:9", {"upto": 3})
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, _):
        daemon.wait_for("service_away")
        change(config, lambda settings: settings["service"].update(url=server.url, requests_at_most=2))
        run = here(tmp_path, "reload")
        assert "The new settings of the service are in use." in run.stdout
        daemon.wait_for("partition_acknowledged")
        assert readings(daemon, "p0") == 1
        assert daemon.stop() == 0
    assert len(server.values("Sink 0")) == 3


def test_a_paused_pipeline_continues_after_its_correction(tmp_path: Path, server: DocumentServer) -> None:
    config = write_configuration(tmp_path, server.url, {"broken": True}, schedule="1h")
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, _):
        daemon.wait_for("source_stopped")
        change(config, lambda settings: settings["pipelines"][0]["source"].update(broken=False))
        assert here(tmp_path, "reload").returncode == 0
        daemon.wait_for("partition_acknowledged")
        assert daemon.stop() == 0


def test_limits_and_schedules_change_while_the_daemon_runs(tmp_path: Path, server: DocumentServer) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 3, "rejects": 4}, schedule="1h")
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, _):
        daemon.wait_for("partition_acknowledged")

        def edit(settings: dict[str, Any]) -> None:
            settings["rejected"] = {"keep_rows": 1}
            settings["pipelines"][0]["schedule"] = {"every": "1s"}

        change(config, edit)
        run = here(tmp_path, "reload")
        assert "The new limits of rejections are in use." in run.stdout
        assert daemon.wait_for("rejections_forgotten")["rejections"] == 3
        change(config, lambda settings: settings["pipelines"][0]["source"].update(upto=4))
        here(tmp_path, "reload")
        daemon.wait_for("partition_acknowledged", nth=2)
        assert daemon.stop() == 0


def wrong_yaml(config: Path) -> None:
    config.write_text(config.read_text() + "}")


def missing_secret(config: Path) -> None:
    change(config, lambda settings: settings["service"].update(api_key="${file:nowhere}"))


def failing_connector(config: Path) -> None:
    change(config, lambda settings: settings["pipelines"][0]["source"].update(bug="opening"))


def another_state_file(config: Path) -> None:
    change(config, lambda settings: settings.update(state="var/other.db"))


def unusable_certificate(config: Path) -> None:
    (config.parent / "ca.pem").write_text("no certificate")
    change(config, lambda settings: settings["service"].update(ca_file="ca.pem"))


WRONG: dict[Callable[[Path], None], tuple[str, int]] = {
    wrong_yaml: ("ingestd.yaml", 78),
    missing_secret: ("service.api_key: There is no file", 78),
    failing_connector: ("pipelines.p0.source: The connector could not be opened: RuntimeError: Symlink loop", 78),
    another_state_file: ("state: This setting can't change while the daemon runs. Restart the daemon", 75),
    unusable_certificate: ("service", 78),
}
"""What spoils a configuration, with the sentence in the log and the exit code of the command."""


def test_a_configuration_that_cannot_be_used_changes_nothing_and_the_log_says_why(
    tmp_path: Path, server: DocumentServer
) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 3})
    former = "The former configuration is used, because the last reload was refused: "
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
        daemon.wait_for("partition_acknowledged")
        good = config.read_text()
        for number, (spoil, (sentence, code)) in enumerate(WRONG.items(), start=1):
            # A correct change beside the wrong one must not take effect either.
            change(config, lambda settings: settings["pipelines"][0]["source"].update(upto=5))
            spoil(config)
            manager.drain()
            begin = len(manager.messages)
            daemon.process.send_signal(signal.SIGHUP)
            refused = daemon.wait_for("reload_refused", by="SIGHUP", nth=number)
            assert refused["level"] == "error"
            assert any(sentence in mistake for mistake in refused["mistakes"]), refused["mistakes"]
            assert manager.wait_for("READY", after=begin)["STATUS"].startswith(former)
            manager.wait_for("STATUS", f"1 pipeline, 0 pending, 0 rejected. {former}", after=begin)
            command = here(tmp_path, "reload")
            assert command.returncode == code, command.stderr
            if spoil is another_state_file:
                assert "the setting 'state' was changed, and only a restart" in command.stderr
            elif spoil is not wrong_yaml:
                assert sentence in command.stderr
                assert "Nothing was changed" in command.stderr
            config.write_text(good)
            manager.drain()
            begin = len(manager.messages)
            done = here(tmp_path, "reload")
            assert (done.returncode, done.stdout.splitlines()[0]) == (0, "Unchanged: 1 pipeline")
            status = manager.wait_for("STATUS", "1 pipeline, ", after=begin)["STATUS"]
            assert status == "1 pipeline, 0 pending, 0 rejected."
        assert daemon.stop() == 0
        assert readings(daemon, "p0") == 1
    assert len(server.values("Sink 0")) == 3


def test_systemd_is_notified_of_the_begin_and_the_end_of_a_reload(tmp_path: Path, server: DocumentServer) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 3})
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
        daemon.wait_for("partition_acknowledged")
        manager.drain()
        begin = len(manager.messages)
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        daemon.process.send_signal(signal.SIGHUP)
        reloading = manager.wait_for("RELOADING", "1", after=begin)
        # systemd ignores a message that is older than its signal.
        assert before <= int(reloading["MONOTONIC_USEC"]) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        ready = manager.wait_for("READY", "1", after=begin)
        assert manager.messages.index(reloading) < manager.messages.index(ready)
        manager.wait_for("STATUS", "1 pipeline, 0 pending", after=manager.messages.index(ready))
        assert daemon.stop() == 0
        assert not [message for message in manager.messages if "RELOADING" in message and "READY" in message]


def test_reloads_in_a_row_end_with_the_last_configuration(tmp_path: Path, server: DocumentServer) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 1}, {"upto": 1})
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
        daemon.wait_for("partition_acknowledged", pipeline="p0")
        for number in range(2, 10):  # ten readings in a minute are logged one by one
            manager.drain()  # the kernel holds ten messages; the daemon waits when there are more
            begin = len(manager.messages)
            change(config, partial(count_up_to, number))
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_for("configuration_reloaded", nth=number - 1, restarted=["p0"])
            manager.wait_for("READY", after=begin)
        # Signals that arrive together cause at least one reload after the last of them.
        change(config, partial(count_up_to, 20))
        for _ in range(10):
            daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for("configuration_reloaded", nth=9, restarted=["p0"])
        read = daemon.wait_for("partition_read", pipeline="p0", records=20)
        number = 1
        while daemon.wait_for("partition_acknowledged", pipeline="p0", nth=number)["timestamp"] < read["timestamp"]:
            number += 1
        assert daemon.stop() == 0
        assert readings(daemon, "p1") == 1
    assert len(server.values("Sink 0")) == 20
    assert len(server.values("Sink 1")) == 1


def test_a_reload_during_a_reload_waits_for_its_end(tmp_path: Path, server: DocumentServer) -> None:
    gate = gated(tmp_path)
    config = write_configuration(tmp_path, server.url, {"gate": str(gate)}, {"upto": 1})
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
        daemon.wait_for("source_notice", pipeline="p0")
        daemon.wait_for("partition_acknowledged", pipeline="p1")
        change(config, lambda settings: settings["pipelines"][0].update(source={"connector": "numbers", "upto": 4}))
        daemon.process.send_signal(signal.SIGHUP)
        manager.wait_for("RELOADING")
        change(config, lambda settings: settings["pipelines"].pop())
        second = reload_in_background(tmp_path, config)
        open_gate(gate)
        out, err = second.communicate(timeout=60)
        assert (second.returncode, err) == (0, "")
        assert daemon.wait_for("configuration_reloaded")["by"] == "SIGHUP"
        daemon.wait_for("partition_acknowledged", pipeline="p0")
        assert daemon.stop() == 0
    assert "Unchanged: 1 pipeline" in out
    assert len(server.values("Sink 0")) == 4


def test_a_stop_ends_a_reload(tmp_path: Path, server: DocumentServer) -> None:
    gate = gated(tmp_path)
    config = write_configuration(tmp_path, server.url, {"gate": str(gate)})
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
        daemon.wait_for("source_notice", pipeline="p0")
        change(config, lambda settings: settings["pipelines"][0]["source"].update(label="changed"))
        waiting = reload_in_background(tmp_path, config)
        manager.wait_for("RELOADING")
        daemon.process.send_signal(signal.SIGTERM)
        manager.wait_for("STOPPING")
        open_gate(gate)
        assert daemon.ended() == 0
        _, err = waiting.communicate(timeout=60)
        assert waiting.returncode == 75
        assert "The daemon is stopping" in err
        assert daemon.wait_for("daemon_stopped")
        assert not [event for event in daemon.events if event.get("event") == "configuration_reloaded"]
    # The next start uses the changed configuration.
    run = subprocess.Popen(
        [sys.executable, "-m", "ingestd", "sync", "-c", str(config)], cwd=tmp_path, env=environment(tmp_path)
    )
    open_gate(gate)
    assert run.wait(timeout=60) == 0
    assert len(server.values("Sink 0")) == 3


def test_the_wait_for_a_daemon_that_does_not_respond_is_explained(tmp_path: Path, server: DocumentServer) -> None:
    config = write_configuration(tmp_path, server.url, {"upto": 3})
    with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, _):
        daemon.wait_for("partition_acknowledged")
        daemon.process.send_signal(signal.SIGSTOP)
        command = [sys.executable, "-m", "ingestd", "reload", "-c", str(config)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment(tmp_path), text=True) as reload:
            assert reload.stderr is not None
            assert reload.stderr.readline().startswith(f"The daemon (process {daemon.process.pid}) has not responded")
            daemon.process.send_signal(signal.SIGCONT)
            assert reload.wait(30) == 0
        assert daemon.stop() == 0


def test_reload_without_a_daemon_is_an_error(tmp_path: Path, server: DocumentServer) -> None:
    write_configuration(tmp_path, server.url, {"upto": 3})
    run = here(tmp_path, "reload")
    assert run.returncode == 75
    assert "No daemon runs" in run.stderr
