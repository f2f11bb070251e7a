"""The client example in the README runs and has the described effect."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ingestd.client import Client
from tests.support.recorded_workspaced import RecordedWorkspaced

README = Path(__file__).parents[3] / "README.md"


def test_the_example_of_the_readme_writes_and_reads_an_entry(
    service: RecordedWorkspaced, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    with Client(service.url, api_key=service.api_key) as client:
        workspace = client.create_workspace("Rover").id
        client.create_sink(workspace, label="Mass budget")
        example = example.replace("http://127.0.0.1:8400", service.url)
        exec(compile(example, str(README), "exec"), {"api_key": service.api_key, "workspace": workspace})
        entry = client.get_entry(workspace, "SNK-1", "00417.mass")
    assert entry.value == "0.10"
    assert f"SNK-1 {entry.updated_at}" in capsys.readouterr().out
