"""Create the store of bytes for an address: a folder or a bucket. The client of buckets is imported on demand."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from workspaced.storage.blobs.address import BucketAddress
from workspaced.storage.blobs.file_threads import FileThreads
from workspaced.storage.blobs.folder import BlobFolder
from workspaced.storage.blobs.port import BlobStore
from workspaced.storage.port import StorageUnusable


def create_blob_store(address: Path | BucketAddress, threads: FileThreads) -> BlobStore:
    """Return the store.

    Raises:
        StorageUnusable: the client of buckets is not installed, or the credentials can't be read.
    """
    if isinstance(address, Path):
        return BlobFolder(address, threads)
    try:
        bucket = import_module("workspaced.storage.blobs.bucket")
    except ModuleNotFoundError as error:
        if error.name != "obstore":
            raise
        raise StorageUnusable(
            "A bucket needs a client that is not installed. Install it with: pip install 'ingestd[objects]'"
        ) from error
    store: BlobStore = bucket.Bucket(address)
    return store
