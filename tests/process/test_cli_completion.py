"""Both programs have click's completion: a real bash completes, and no verb is imported for a list of verbs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from ingestd.cli import main
from ingestd.cli.completion import PIPELINE
from scripts.docs_site.command_tree import iter_commands

BINARIES = Path(sys.executable).parent


def completed(words: str) -> list[str]:
    """Return the completions of bash for the last of the words, by the function that the script defines."""
    script = """
        program=${1%% *}
        eval "$(env _${program^^}_COMPLETE=bash_source $program)"
        COMP_WORDS=($1); [ "${1% }" = "$1" ] || COMP_WORDS+=('')
        COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
        complete -p $program >/dev/null || exit 1
        _${program}_completion $program
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    env = {**os.environ, "PATH": f"{BINARIES}:{os.environ['PATH']}"}
    run = subprocess.run(["bash", "-c", script, "bash", words], env=env, capture_output=True, text=True, check=True)
    assert not run.stderr
    return run.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ingestd run --log-level e", {"error"}),
        ("workspaced keys create x --role o", {"owner"}),
    ],
)
def test_bash_completes_commands_options_and_choices(words: str, expected: set[str]) -> None:
    found = completed(words)
    assert expected <= set(found)
    assert all(one.startswith(words.rpartition(" ")[2]) for one in found)


def test_the_verbs_are_completed_without_importing_any() -> None:
    script = (
        "import sys\nfrom click.shell_completion import BashComplete\nfrom ingestd.cli import main\n"
        "found = BashComplete(main, {}, 'ingestd', '_INGESTD_COMPLETE').get_completions([], 's')\n"
        "print(sorted(one.value for one in found))\nprint(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    verbs, modules = run.stdout.splitlines()
    assert "'status'" in verbs
    assert not [
        name for name in modules.split() if name.startswith(("ingestd.cli.", "polars")) and name != "ingestd.cli.app"
    ]


CONFIGURATION = """\
pipelines:
  - {name: masses}
  - {name: mass-budget, source: {connector: unknown}}
  - {name: readings}
"""


def offered(words: Sequence[str], incomplete: str) -> list[tuple[str, str]]:
    """Return what click offers to every shell: values with their types."""
    found = BashComplete(main, {}, "ingestd", "_INGESTD_COMPLETE").get_completions(list(words), incomplete)
    return [(one.value, one.type) for one in found]


def test_pipelines_of_the_configuration_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INGESTD_CONFIG", raising=False)
    assert offered(["sync"], "m") == [], "without a configuration nothing is offered"
    (tmp_path / "other.yaml").write_text(CONFIGURATION)
    both = [("masses", "plain"), ("mass-budget", "plain")]
    assert offered(["-c", "other.yaml", "sync"], "m") == both
    assert offered(["plan", "-c", "other.yaml"], "m") == both
    (tmp_path / "ingestd.yaml").write_text(CONFIGURATION)
    assert offered(["sync", "masses"], "m") == [("mass-budget", "plain")], "a given name is not offered again"
    assert offered(["rejected", "list", "--pipeline"], "r") == [("readings", "plain")]
    assert completed("ingestd pause mass") == ["masses", "mass-budget"]
    (tmp_path / "ingestd.yaml").write_text("pipelines: [")
    assert offered(["sync"], "m") == []


def test_every_argument_for_a_pipeline_completes_its_names() -> None:
    plain = [
        f"{ctx.command_path} {parameter.name}"
        for command, ctx in iter_commands(main, "ingestd")
        for parameter in command.params
        if (parameter.name in {"pipeline", "pipelines"} or "--pipeline" in parameter.opts)
        and parameter.type is not PIPELINE
    ]
    assert plain == ["ingestd init pipeline"], "init names a new one"


@pytest.mark.parametrize("words", [["why"], ["init", "--sample"], ["rejected", "list", "--file"], ["check", "-c"]])
def test_files_are_completed_by_the_shell(words: list[str]) -> None:
    assert offered(words, "dro") == [("dro", "file")]
