"""Parts shared by the connectors that read files: identity, stability, and batches of one file."""

from connectors.files.file_batches import OpenFile, open_file, read_batches, read_sample_file, unchanged_batch
from connectors.files.identity import Identity
from connectors.files.stability import StabilityTracker

__all__ = [
    "Identity",
    "OpenFile",
    "StabilityTracker",
    "open_file",
    "read_batches",
    "read_sample_file",
    "unchanged_batch",
]
