"""The mirror in SQLite."""

from ingestd.mirror.sqlite.examination import damage_named, examine
from ingestd.mirror.sqlite.failures import state_exists
from ingestd.mirror.sqlite.mirror import SqliteMirror
from ingestd.mirror.sqlite.status_store import Observer

__all__ = ["Observer", "SqliteMirror", "damage_named", "examine", "state_exists"]
