"""The mirror in SQLite."""

from ingestd.mirror.sqlite.mirror import SqliteMirror
from ingestd.mirror.sqlite.state_copy import EntryDifference, StateCopy
from ingestd.mirror.sqlite.state_file.backup import acknowledgeable_partitions, back_up_state, restore_state
from ingestd.mirror.sqlite.state_file.connection import StateFile, lock_state
from ingestd.mirror.sqlite.state_file.examination import damage_named, examine
from ingestd.mirror.sqlite.state_file.failures import state_exists, unopenable
from ingestd.mirror.sqlite.state_file.file_owner import open_state_file
from ingestd.mirror.sqlite.status_store import Observer

__all__ = [
    "EntryDifference",
    "Observer",
    "SqliteMirror",
    "StateCopy",
    "StateFile",
    "acknowledgeable_partitions",
    "back_up_state",
    "damage_named",
    "examine",
    "lock_state",
    "open_state_file",
    "restore_state",
    "state_exists",
    "unopenable",
]
