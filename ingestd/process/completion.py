"""The verb `completion` of both programs: scripts for shells."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

_SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
_HELP = """Print a script that completes commands and options in bash, zsh or fish.

bash needs version 4.4 or newer. The script runs {name} for the completions, so it fits every later version.

\b
bash: put this line into ~/.bashrc
    eval "$({name} completion bash)"
zsh: put this line into ~/.zshrc, after compinit
    eval "$({name} completion zsh)"
fish:
    {name} completion fish > ~/.config/fish/completions/{name}.fish

Example: {name} completion bash > /etc/bash_completion.d/{name}
"""


def completion_command(name: str) -> click.Command:
    """Return the command that prints the script of a program for a shell."""

    @click.command("completion", help=_HELP.format(name=name))
    @click.argument("shell", type=click.Choice(list(_SHELLS)))
    @click.pass_context
    def completion(ctx: click.Context, shell: str) -> None:
        # click derives the name of this variable, in which a shell requests completions, from that of the program.
        variable = f"_{name.upper()}_COMPLETE"
        made = _SHELLS[shell](ctx.find_root().command, {}, name, variable)
        # Not `source`, which runs a bash to check its version: the script may be for another machine.
        click.echo(made.source_template % made.source_vars())

    return completion
