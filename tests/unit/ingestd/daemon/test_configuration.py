from __future__ import annotations

from pathlib import Path

import pytest

from ingestd.core.errors import ConfigurationError
from ingestd.daemon.configuration import Configuration, PipelineUnknown, chosen_pipelines, read_configuration

_PIPELINE = """
  - name: {name}
    source: {{connector: directory, path: drop, pattern: "*.csv"}}
    entries: {{key: k, value: v}}
    sink: {{workspace: w, label: {name}}}
"""


def configuration(tmp_path: Path, *names: str) -> Configuration:
    path = tmp_path / "ingestd.yaml"
    pipelines = "".join(_PIPELINE.format(name=name) for name in names)
    path.write_text(f"service: {{url: http://h, api_key: k}}\nstate: s.db\npipelines:{pipelines}")
    return read_configuration(path, environment={}, cwd=Path("/"))


def test_without_names_every_pipeline_is_selected(tmp_path: Path) -> None:
    assert chosen_pipelines(configuration(tmp_path, "mass", "bench"), []) == ["mass", "bench"]


def test_repeated_names_are_selected_once_in_the_order_of_the_command(tmp_path: Path) -> None:
    assert chosen_pipelines(configuration(tmp_path, "mass", "bench"), ["bench", "mass", "bench"]) == ["bench", "mass"]


def test_an_unknown_name_is_rejected_with_the_nearest_or_with_all_names(tmp_path: Path) -> None:
    found = configuration(tmp_path, "mass-budget", "bench")
    with pytest.raises(PipelineUnknown, match=r"no pipeline 'mas-budget'.*mass-budget"):
        chosen_pipelines(found, ["mas-budget"])
    with pytest.raises(PipelineUnknown, match=r"Its pipelines are: mass-budget, bench\."):
        chosen_pipelines(found, ["xyz"])


def test_relative_paths_start_at_the_folder_of_the_configuration(tmp_path: Path) -> None:
    found = configuration(tmp_path, "mass")
    assert found.base == tmp_path
    assert found.settings.state == tmp_path / "s.db"


def test_a_missing_file_is_a_mistake_in_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such file"):
        read_configuration(tmp_path / "none.yaml", environment={}, cwd=tmp_path)
