"""Real reports of pytest become entries: a report in another order sends nothing, and one changed result sends one entry."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.support.daemon_process import environment, here
from tests.support.recorded_workspaced import RecordedWorkspaced

TESTS = """
import pytest

@pytest.mark.parametrize("number", range(5))
def test_number(number, request):
    assert number != {bad}
"""


def report(folder: Path, bad: int) -> ET.ElementTree[ET.Element]:
    (folder / "test_rig.py").write_text(TESTS.replace("{bad}", str(bad)))
    words = ["-q", "-p", "no:cacheprovider", "--junitxml=report.xml", "--rootdir", ".", "test_rig.py"]
    settings = environment(folder, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    subprocess.run([sys.executable, "-m", "pytest", *words], cwd=folder, env=settings, capture_output=True, check=False)
    return ET.parse(folder / "report.xml")


def test_reports_become_entries_by_test_case(tmp_path: Path) -> None:
    with RecordedWorkspaced(tmp_path / "workspaced") as service:
        pipeline = {
            "name": "tests",
            "source": {
                "connector": "directory",
                "path": "drop",
                "settle_seconds": 0,
                "format": "junit",
                "pattern": "*.xml",
            },
            "entries": {"key": "{classname}.{name}", "value": "{status}", "type": "text"},
            "sink": {"workspace": service.workspace("Rover"), "label": "Results"},
        }
        settings = {
            "service": {"url": service.url, "api_key": service.api_key},
            "state": "ingestd.db",
            "pipelines": [pipeline],
        }
        (tmp_path / "ingestd.yaml").write_text(json.dumps(settings))  # JSON is YAML
        (tmp_path / "drop").mkdir()
        (tmp_path / "run").mkdir()

        def deliver(tree: ET.ElementTree[ET.Element]) -> int:
            """Return the number of requests that write."""
            service.requests.clear()
            tree.write(tmp_path / "being-written")
            (tmp_path / "being-written").rename(tmp_path / "drop" / "report.xml")
            done = here(tmp_path, "sync")
            assert done.returncode == 0, done.stdout + done.stderr
            return sum(request.writes for request in service.requests)

        tree = report(tmp_path / "run", bad=2)
        assert deliver(tree) > 0
        held = {key: value for key, (value, _) in service.values("Results").items()}
        statuses = ["passed", "passed", "failed", "passed", "passed"]
        assert held == {f"test_rig.test_number[{number}]": status for number, status in enumerate(statuses)}
        (suite,) = tree.getroot()
        suite[:] = list(reversed(suite))
        assert deliver(tree) == 0
        assert deliver(report(tmp_path / "run", bad=3)) == 1
        changed = {key: value for key, (value, _) in service.values("Results").items() if held[key] != value}
        assert changed == {"test_rig.test_number[2]": "passed", "test_rig.test_number[3]": "failed"}
