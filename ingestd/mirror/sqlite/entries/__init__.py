"""Entries: written, queued in segments, owned by partitions, and compared with earlier readings."""
