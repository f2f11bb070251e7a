"""Backup and restoration of a configuration's state file."""

from __future__ import annotations

from pathlib import Path

from ingestd.daemon.configuration import Configuration
from ingestd.daemon.kept_files import read_kept, remove_unused, restore_kept
from ingestd.mirror.sqlite import back_up_state, restore_state


def back_up(configuration: Configuration, target: Path) -> int:
    """Copy the state file and the kept files of the connectors to a new file. Return the size of the new file in bytes.

    Raises:
        MirrorError: see `back_up_state`.
    """
    state = configuration.settings.state
    return back_up_state(state, target, kept=lambda: read_kept(state))


def restore(configuration: Configuration, backup: Path) -> Path | None:
    """Replace the state file by a backup. Return the path of the former state file, if there was one.

    The kept files of the connectors are written again. Their caches are deleted, because they belong to the former state file.

    Raises:
        MirrorError: see `restore_state`.
    """
    state = configuration.settings.state
    replaced = restore_state(state, backup, restore_kept=lambda files: restore_kept(state, files))
    remove_unused(state, ())
    return replaced
