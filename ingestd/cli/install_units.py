"""`ingestd install-units`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from ingestd.daemon.exit_codes import ExitCode
from ingestd.process.terminal_text import echo
from ingestd.process.unit_files import UnitsChanged, system_units, user_units, write_units


@click.command("install-units")
@click.option("--user", is_flag=True, help="Write units for the service manager of this account, below ~/.config.")
@click.option("--force", is_flag=True, help="Replace files that have another content.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("/"),
    help="Write the files of the system below this folder, for an image or a package.",
)
def install_units(user: bool, force: bool, root: Path) -> None:
    """Write the systemd units of the daemon and of the service.

    The units start the programs of this installation. Without --user the command also writes the users and folders that the
    units need, below /etc. It starts nothing and prints the next commands. A file with another content is an error: it was
    edited, or belongs to another version. Put your own settings into a drop-in ('systemctl edit').

    Exit codes: 0 done, 73 a file can't be written, or has another content and nothing was written.

    Example: ingestd install-units --user
    """
    if user and root != Path("/"):
        raise click.UsageError("--root is for the units of the system; it can't be used with --user.")
    units = user_units(os.environ, Path.home()) if user else system_units(root)
    try:
        written, present = write_units(units, force=force)
    except UnitsChanged as changed:
        for path in changed.paths:
            echo(f"{path} has another content: it was edited, or belongs to another version.", err=True)
        echo("Nothing was written. Move your changes to a drop-in, then use --force to replace the files.", err=True)
        sys.exit(ExitCode.OUTPUT_UNWRITABLE)
    except OSError as error:
        advice = " Run the command as root, or use --user." if isinstance(error, PermissionError) and not user else ""
        echo(f"{error.filename} can't be written: {error.strerror}.{advice}", err=True)
        sys.exit(ExitCode.OUTPUT_UNWRITABLE)
    for path in written:
        echo(f"Written: {path}")
    for path in present:
        echo(f"Unchanged: {path}")
    manager = "systemctl --user" if user else "systemctl"
    echo("Next:")
    if not user:
        echo("  systemd-sysusers ingestd.conf && systemd-tmpfiles --create ingestd.conf")
    echo(f"  {manager} daemon-reload")
    echo(f"  {manager} enable --now ingestd")
    if user:
        echo("The units end when you log out. 'loginctl enable-linger' lets units run without a login.")
