"""The mirror in SQLite."""

from ingestd.mirror.sqlite.mirror import SqliteMirror
from ingestd.mirror.sqlite.state_copy import EntryDifference, StateCopy
from ingestd.mirror.sqlite.state_file.backup import back_up_state, restore_state
from ingestd.mirror.sqlite.state_file.connection import StateFile
from ingestd.mirror.sqlite.state_file.examination import damage_named, examine
from ingestd.mirror.sqlite.state_file.failures import state_exists
from ingestd.mirror.sqlite.status_store import Observer

__all__ = [
    "EntryDifference",
    "Observer",
    "SqliteMirror",
    "StateCopy",
    "StateFile",
    "back_up_state",
    "damage_named",
    "examine",
    "restore_state",
    "state_exists",
]
