"""What connectors that read files share: which file it is, whether it stands still, and how it becomes batches."""

from connectors.files.file_batches import OpenFile, batches_of, open_file, unchanged
from connectors.files.identity import Identity, identity_of
from connectors.files.stability import StabilityTracker

__all__ = ["Identity", "OpenFile", "StabilityTracker", "batches_of", "identity_of", "open_file", "unchanged"]
