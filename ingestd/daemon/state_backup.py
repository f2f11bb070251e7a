"""Backup and restoration of a configuration's state file."""

from __future__ import annotations

from pathlib import Path

from ingestd.daemon.configuration import Configuration
from ingestd.daemon.kept_files import remove_unused
from ingestd.mirror.sqlite import back_up_state, restore_state


def back_up(configuration: Configuration, target: Path) -> int:
    """Copy the state file to a new file. Return its size in bytes.

    Raises:
        MirrorError: see `back_up_state`.
    """
    return back_up_state(configuration.settings.state, target)


def restore(configuration: Configuration, backup: Path) -> Path | None:
    """Replace the state file by a backup. Return the path of the former one, if there was one.

    The connectors' kept files are deleted, because they belong to the former one. They only save work.

    Raises:
        MirrorError: see `restore_state`.
    """
    replaced = restore_state(configuration.settings.state, backup)
    remove_unused(configuration.settings.state, ())
    return replaced
