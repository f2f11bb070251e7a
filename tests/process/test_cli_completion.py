"""Both programs have click's completion: a real bash completes, and no verb is imported for a list of verbs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
