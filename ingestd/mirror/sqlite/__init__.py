"""The mirror in SQLite."""

from ingestd.mirror.sqlite.mirror import SqliteMirror
from ingestd.mirror.sqlite.observing import Observer

__all__ = ["Observer", "SqliteMirror"]
