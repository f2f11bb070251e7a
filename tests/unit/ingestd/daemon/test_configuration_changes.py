"""What a reload does with the pipelines of two configurations."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingestd.core.errors import ConfigurationError
from ingestd.daemon.configuration import Configuration, read_configuration
from ingestd.daemon.configuration_changes import check_unchangeable, compare

HEAD = 'service: {url: "http://127.0.0.1:8400", api_key: "%s"}\nstate: %s\n%spipelines:\n'
PIPELINE = """\
  - name: %s
    source: {connector: directory, path: %s, watch: %s}
    entries: [{key: "{id}", value: "{v}"}]
    sink: {workspace: w, label: %s}
"""


def read(
    folder: Path, *pipelines: tuple[str, ...], key: str = "key", state: str = "state.db", rejected: str = ""
) -> Configuration:
    path = folder / "ingestd.yaml"
    path.write_text(HEAD % (key, state, rejected) + "".join(PIPELINE % one for one in pipelines))
    return read_configuration(path, environment={}, cwd=folder)


def test_the_same_file_changes_nothing(tmp_path: Path) -> None:
    path = Path(__file__).parents[4] / "config/ingestd.yaml"
    environment = {"INGESTD_API_KEY": "key", "PDM_PASSWORD": "password", "CREDENTIALS_DIRECTORY": str(tmp_path)}
    before, after = (read_configuration(path, environment=environment, cwd=tmp_path, secrets=False) for _ in range(2))
    changes = compare(before.settings, after.settings)
    assert (changes.ended, changes.started, changes.service, changes.rejected) == ((), (), False, False)
    assert changes.unchanged == tuple(one.name for one in before.settings.pipelines)


def test_each_pipeline_is_added_removed_restarted_or_unchanged(tmp_path: Path) -> None:
    before = read(tmp_path, ("a", "a", "auto", "l"), ("b", "b", "auto", "l"), ("c", "c", "auto", "l"))
    after = read(tmp_path, ("c", "c", "auto", "l"), ("b", "b", "polling", "l"), ("d", "d", "auto", "l"))
    changes = compare(before.settings, after.settings)
    assert (changes.added, changes.removed, changes.restarted, changes.unchanged) == (("d",), ("a",), ("b",), ("c",))
    assert changes.ended == ("a", "b")
    assert changes.started == ("d", "b")


def test_an_unchanged_pipeline_with_the_source_and_sink_of_a_removed_one_restarts(tmp_path: Path) -> None:
    # It may take over the state of the removed one, so it must not run meanwhile.
    before = read(tmp_path, ("a", "same", "auto", "l"), ("b", "same", "auto", "l"), ("c", "c", "auto", "l"))
    after = read(tmp_path, ("b", "same", "auto", "l"), ("c", "c", "auto", "l"))
    changes = compare(before.settings, after.settings)
    assert (changes.removed, changes.restarted, changes.unchanged) == (("a",), ("b",), ("c",))


def test_a_new_key_and_new_limits_are_no_reason_to_restart_a_pipeline(tmp_path: Path) -> None:
    one = ("a", "a", "auto", "l")
    changes = compare(
        read(tmp_path, one).settings, read(tmp_path, one, key="other", rejected="rejected: {keep_rows: 1}\n").settings
    )
    assert (changes.service, changes.api_key, changes.rejected, changes.unchanged) == (True, True, True, ("a",))


def test_another_state_file_is_refused_by_name(tmp_path: Path) -> None:
    one = ("a", "a", "auto", "l")
    before, after = read(tmp_path, one), read(tmp_path, one, state="other.db")
    check_unchangeable(before, before)
    with pytest.raises(ConfigurationError, match=r"state: This setting can't change while the daemon runs\. Restart"):
        check_unchangeable(before, after)


def test_the_location_of_the_log_is_only_for_commands_and_needs_no_restart(tmp_path: Path) -> None:
    one = ("a", "a", "auto", "l")
    check_unchangeable(read(tmp_path, one), read(tmp_path, one, rejected="log: {file: var/ingestd.log}\n"))
