"""Behaviour of all commands: finding the configuration, and reporting errors."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

from tests.support.daemon_process import environment, here, ingestd, write_configuration
from tests.support.document_server import DocumentServer


def named(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return write_configuration(folder / name, "http://127.0.0.1:9", {"upto": 3})


def test_the_configuration_is_named_by_option_or_environment_or_is_in_the_current_folder(tmp_path: Path) -> None:
    before, after, variable = named(tmp_path, "before"), named(tmp_path, "after"), named(tmp_path, "variable")
    usual = write_configuration(tmp_path, "http://127.0.0.1:9", {"upto": 3})
    for expected, arguments, variables in (
        (before, ("-c", str(before), "status", "--json"), {}),
        (after, ("status", "--json", "--config", str(after)), {}),
        (after, ("-c", str(before), "status", "--json", "-c", str(after)), {}),
        (variable, ("status", "--json"), {"INGESTD_CONFIG": str(variable)}),
        (before, ("status", "--json", "-c", str(before)), {"INGESTD_CONFIG": str(variable)}),
        (usual, ("status", "--json"), {}),
    ):
        assert json.loads(here(tmp_path, *arguments, **variables).stdout)["configuration"] == str(expected)


def test_a_missing_configuration_is_reported_with_the_searched_paths(tmp_path: Path) -> None:
    run = here(tmp_path, "status")
    assert run.returncode == 78
    assert "INGESTD_CONFIG" in run.stderr
    assert str(tmp_path / "ingestd.yaml") in run.stderr


def test_some_commands_need_no_configuration(tmp_path: Path) -> None:
    version, schema = ingestd(tmp_path, "--version"), here(tmp_path, "schema")
    assert (version.returncode, version.stderr, schema.returncode, schema.stderr) == (0, "", 0, "")
    assert re.fullmatch(r"ingestd \d+\.\d+\.\d+\n", version.stdout)
    assert {"directory", "database", "numbers"} <= json.loads(schema.stdout)["$defs"].keys()


def test_an_internal_error_is_a_sentence_with_exit_code_70_and_a_traceback_without_secrets_on_request(
    tmp_path: Path,
) -> None:
    environment(tmp_path)
    module = tmp_path / "plug-ins" / "numbers_source.py"
    bug = "raise RuntimeError('edw_AbCd1234_geheim at postgresql://reader:geheim@db/pdm')"
    method = f"        @classmethod\n        def __get_pydantic_json_schema__(cls, *_):\n            {bug}\n"
    options = "    class Options(BaseModel):\n"
    module.write_text(module.read_text().replace(options, options + method))
    run = ingestd(tmp_path, "schema")
    assert run.returncode == 70
    assert "RuntimeError: edw_*** at postgresql://***@db/pdm. This is a bug in ingestd" in run.stderr
    assert "--debug" in run.stderr
    assert len(run.stderr.splitlines()) == 1
    debugged = ingestd(tmp_path, "--debug", "schema")
    assert debugged.returncode == 70
    assert "Traceback" in debugged.stderr
    assert "geheim" not in run.stderr + debugged.stderr


def test_on_a_terminal_a_sync_shows_progress_and_the_same_last_line(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        config = write_configuration(tmp_path, server.url, {"upto": 3})
        ours, theirs = pty.openpty()
        variables = environment(tmp_path, TERM="xterm", COLUMNS="120")
        with subprocess.Popen(
            [sys.executable, "-m", "ingestd", "sync", "-c", str(config)],
            env=variables, stdin=theirs, stdout=theirs, stderr=theirs,
        ) as sync:  # fmt: skip
            os.close(theirs)
            screen = b""
            while select.select([ours], [], [], 30)[0]:
                try:
                    screen += os.read(ours, 65_536)
                except OSError:  # Linux reports this when the other side is closed
                    break
            assert sync.wait(10) == 0
        os.close(ours)
    text = screen.decode()
    assert "\x1b[" in text
    assert "p0: numbers: 3 records read: 3 created" in text
    assert "Sink 0 in Bench" in text
    assert text.endswith("3 entries delivered, 0 pending, 0 rejected.\r\n")


def test_a_working_directory_that_was_deleted_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "former"
    folder.mkdir()
    config = write_configuration(tmp_path, "http://127.0.0.1:9", {"upto": 3})
    command = f'rmdir "$PWD"; exec "{sys.executable}" -m ingestd status -c "{config}"'
    run = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert run.returncode == 2
    assert "The working directory of this command was deleted" in run.stderr


def test_the_name_of_a_file_does_not_depend_on_the_locale(tmp_path: Path) -> None:
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop/Prüfstand.csv").write_text("part,mass\nA,1\n")
    source = {"connector": "directory", "path": "drop", "settle_seconds": 0}
    with DocumentServer() as server:
        server.workspace("Bench")
        config = write_configuration(tmp_path, server.url, source)
        config.write_text(config.read_text().replace("0.{n}", "{file.stem}").replace("{n}", "{mass}"))
        run = subprocess.run(
            [sys.executable, "-m", "ingestd", "sync"],
            cwd=tmp_path,
            env=environment(tmp_path, LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0"),
            capture_output=True,
            check=False,
        )
    assert run.returncode == 0, run.stderr
    assert "Prüfstand.csv: 1 record read: 1 created" in run.stdout.decode()
