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


def test_without_names_every_pipeline_is_meant(tmp_path: Path) -> None:
    assert chosen_pipelines(configuration(tmp_path, "mass", "bench"), []) == ["mass", "bench"]


def test_a_name_twice_is_meant_once_and_the_order_is_the_commands(tmp_path: Path) -> None:
    assert chosen_pipelines(configuration(tmp_path, "mass", "bench"), ["bench", "mass", "bench"]) == ["bench", "mass"]


def test_an_unknown_name_is_refused_with_the_nearest_or_with_all_names(tmp_path: Path) -> None:
    found = configuration(tmp_path, "mass-budget", "bench")
    with pytest.raises(PipelineUnknown, match=r"no pipeline 'mas-budget'.*mass-budget"):
        chosen_pipelines(found, ["mas-budget"])
    with pytest.raises(PipelineUnknown, match=r"Its pipelines are: mass-budget, bench\."):
        chosen_pipelines(found, ["xyz"])


def test_paths_begin_at_the_configurations_folder(tmp_path: Path) -> None:
    found = configuration(tmp_path, "mass")
    assert found.base == tmp_path
    assert found.settings.state == tmp_path / "s.db"


def test_a_file_that_is_not_there_is_a_mistake_in_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such file"):
        read_configuration(tmp_path / "none.yaml", environment={}, cwd=tmp_path)
