"""The page for Python: its code runs in the order of the page, and prints what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from ingestd.client import Client
from tests.support.recorded_workspaced import RecordedWorkspaced

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
STEP = re.compile(r"^```python\n(?P<code>.*?)^```$(?:\n\n^```text\n(?P<shown>.*?)^```$)?", re.MULTILINE | re.DOTALL)


def test_the_code_of_the_page_runs_and_prints_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = list(STEP.finditer(PAGE.read_text(encoding="utf-8")))
    assert len(steps) >= 3
    with RecordedWorkspaced(tmp_path / "data") as service, Client(service.url, api_key=service.api_key) as client:
        workspace = client.create_workspace("Rover").id
        client.create_sink(workspace, label="Mass budget")
        (tmp_path / "bench").mkdir()
        (tmp_path / "bench" / "power.csv").write_text("part,watts\n00417,1.50\n01523,20\n,3\n")
        monkeypatch.chdir(tmp_path)
        names: dict[str, object] = {"api_key": service.api_key}
        for step in steps:
            code, output = step["code"].replace("http://127.0.0.1:8400", service.url), io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(code, str(PAGE), "exec"), names)
            if step["shown"] is not None:
                assert output.getvalue() == step["shown"]
        opened = names["client"]
        assert isinstance(opened, Client)
        opened.close()
        assert client.sink("Rover", "Power budget").to_dict() == {"00417.power": "1.50", "01523.power": "20"}
        assert client.sink("Rover", "Mass budget").to_dict() == {"00417.mass": "0.100", "01523.mass": "12.250"}
