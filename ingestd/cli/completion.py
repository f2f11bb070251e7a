"""`ingestd completion`."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

_SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
_VARIABLE = "_INGESTD_COMPLETE"
"""The variable in which a shell requests completions: click derives this name from that of the program."""


@click.command()
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in bash, zsh or fish.

    bash needs version 4.4 or newer. The script runs ingestd for the completions, so it fits every later version.

    \b
    bash: put this line into ~/.bashrc
        eval "$(ingestd completion bash)"
    zsh: put this line into ~/.zshrc, after compinit
        eval "$(ingestd completion zsh)"
    fish:
        ingestd completion fish > ~/.config/fish/completions/ingestd.fish

    Example: ingestd completion bash > /etc/bash_completion.d/ingestd
    """  # noqa: D301 - click's mark of a paragraph that is not rewrapped
    made = _SHELLS[shell](ctx.find_root().command, {}, "ingestd", _VARIABLE)
    # Not `source`, which runs a bash to check its version: the script may be for another machine.
    click.echo(made.source_template % made.source_vars())
