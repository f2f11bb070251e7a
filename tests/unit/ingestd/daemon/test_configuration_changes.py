from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.core.errors import ConfigurationError
from ingestd.daemon.configuration import Configuration, read_configuration
from ingestd.daemon.configuration_changes import check_unchangeable

TEXT = """
service: {url: "http://127.0.0.1:1", api_key: k, client_id: c}
state: ingestd.db
pipelines:
  - name: parts
    source: {connector: directory, path: drop}
    entries: {key: "{part}", value: "{mass}"}
    sink: {workspace: 5a7e0000-0000-4000-8000-000000000001, label: Parts}
"""


@pytest.fixture
def running(tmp_path: Path) -> Configuration:
    path = tmp_path / "ingestd.yaml"
    path.write_text(TEXT)
    return read_configuration(path, environment={}, cwd=tmp_path)


def test_the_location_of_the_log_is_only_for_commands_and_needs_no_restart(running: Configuration) -> None:
    log = running.settings.log.model_copy(update={"file": Path("/var/log/ingestd.log")})
    found = replace(running, settings=running.settings.model_copy(update={"log": log}))
    check_unchangeable(running, found)


def test_another_state_file_needs_a_restart(running: Configuration, tmp_path: Path) -> None:
    found = replace(running, settings=running.settings.model_copy(update={"state": tmp_path / "other.db"}))
    with pytest.raises(ConfigurationError) as raised:
        check_unchangeable(running, found)
    assert [one.key for one in raised.value.mistakes] == ["state"]
