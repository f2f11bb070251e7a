"""The client example in the README runs and has the described effect."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ingestd.client import Client
from tests.support.recorded_workspaced import RecordedWorkspaced

README = Path(__file__).parents[3] / "README.md"


def test_the_example_of_the_readme_writes_into_the_named_sink_only(
    service: RecordedWorkspaced, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    with Client(service.url, api_key=service.api_key) as client:
        for left in client.list_workspaces():
            client.delete_workspace(left.id)
        workspace = client.create_workspace("Rover").id
        for label in ("Mass budget", "Power budget"):
            client.create_sink(workspace, label=label)
        example = example.replace("http://127.0.0.1:8400", service.url)
        exec(compile(example, str(README), "exec"), {"api_key": service.api_key})
        assert client.sink("Rover", "Mass budget").to_dict() == {"00417.mass": "0.10"}
        assert client.sink("Rover", "Power budget").to_dict() == {}
    assert "1 created, 0 rejected" in capsys.readouterr().out
