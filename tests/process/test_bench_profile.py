"""`python -m bench profile`: what the flame graph of a small case shows, and what is said without py-spy."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench import files, flame
from bench.__main__ import profile


@pytest.fixture
def files_of_a_small_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FILES", 200)


@pytest.mark.usefixtures("files_of_a_small_case")
def test_a_flame_graph_shows_the_daemon_and_not_the_benchmark(tmp_path: Path) -> None:
    done = CliRunner().invoke(profile, ["files", "--folder", str(tmp_path)])
    picture = tmp_path / "files-1-ingestd-run.svg"
    assert (done.exit_code, done.output) == (0, f"{picture}\n")
    assert [path.name for path in tmp_path.iterdir()] == [picture.name]
    functions = re.findall(r"<title>(.*?) \(", picture.read_text())
    assert {"Reader.read_pass", "StateFile.writing"} <= {*functions}
    assert not [name for name in functions if "_wait_until_archived" in name]
    assert str(tmp_path) not in picture.read_text()
    assert str(Path(sys.prefix)) not in picture.read_text()


def test_without_py_spy_the_command_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    done = CliRunner().invoke(profile, ["files", "--folder", str(tmp_path / "pictures")])
    assert (done.exit_code, done.output) == (1, f"Error: {flame.MISSING}\n")


def test_a_process_that_py_spy_cannot_read_is_an_error(tmp_path: Path) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process, flame.recording(tmp_path, "files"):
        with pytest.raises(flame.NotRecorded, match=r"^py-spy could not record ingestd run: "):  # noqa: SIM117
            with flame.recorded(process.pid, "ingestd run"):
                pass
        process.communicate()
