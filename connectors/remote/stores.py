"""The kinds of remote stores, each with the package that it needs."""

from __future__ import annotations

from pathlib import Path

from connectors.remote.options import RemoteOptions
from connectors.remote.store import RemoteStore
from ingestd.sdk import SourceBroken


def open_store(options: RemoteOptions, base: Path) -> RemoteStore:
    """Return the store of ``options``, not connected; relative paths are resolved against ``base``.

    Raises:
        SourceBroken: the package that it needs is not installed.
    """
    # The packages are extras, so each is imported when it is needed.
    if options.address.scheme == "sftp":
        try:
            from connectors.remote.sftp import SftpStore  # noqa: PLC0415
        except ImportError as error:
            raise SourceBroken(f"SFTP needs asyncssh: install ingestd[sftp] ({error}).") from error
        return SftpStore(options, base)
    try:
        from connectors.remote.object_store import ObjectStore  # noqa: PLC0415
    except ImportError as error:
        raise SourceBroken(f"{options.address.scheme}:// needs obstore: install ingestd[objects] ({error}).") from error
    return ObjectStore(options, base)
