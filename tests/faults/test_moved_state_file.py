"""The state file is moved away while the daemon runs: nothing is read into a file without a name, and all arrives later."""

from __future__ import annotations

from pathlib import Path

import httpx

from tests.faults.test_full_state_disk import Site
from tests.support.daemon_process import running_daemon
from tests.support.workspaced_process import WorkspaceService, new_key


def test_a_state_file_that_is_moved_away_pauses_the_daemon_until_it_is_back(tmp_path: Path) -> None:
    key = new_key(tmp_path / "service")
    (tmp_path / "state").mkdir()
    with WorkspaceService(tmp_path / "service") as service:
        site = Site(tmp_path, service, key, tmp_path / "state")
        state, elsewhere = tmp_path / "state" / "ingestd.db", tmp_path / "elsewhere.db"
        with running_daemon(tmp_path, "run", "--log-level", "debug", "-c", str(site.config)) as (daemon, _):
            expected = site.drop("first")
            daemon.wait_for("partition_acknowledged")
            state.rename(elsewhere)
            later = site.drop("second")
            daemon.wait_for("intake_paused")
            sentence = daemon.wait_for("state_unwritable")["sentence"]
            assert sentence.startswith(f"{state} was moved, replaced or removed while ingestd was using it.")
            address = daemon.wait_for("listener_opened")["address"]
            assert sentence in httpx.get(f"{address}/readyz").json()["reasons"]
            assert site.values() == expected
            elsewhere.rename(state)
            daemon.wait_for("intake_resumed")
            site.wait_for(expected | later, daemon)
            daemon.wait_for("partition_acknowledged", partition="second.csv")
            assert daemon.stop() == 0
            assert not [event for event in daemon.events if "Traceback" in str(event)]
        site.close()
