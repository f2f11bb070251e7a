"""What connectors that read files share: which file it is, whether it stands still, and how it becomes batches."""

from connectors.files.file_batches import OpenFile, open_file, read_batches, unchanged
from connectors.files.identity import Identity
from connectors.files.stability import StabilityTracker

__all__ = ["Identity", "OpenFile", "StabilityTracker", "open_file", "read_batches", "unchanged"]
