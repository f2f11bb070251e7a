"""A small private file of a connector that must not be lost, such as a client id or a certificate."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path

MAX_BYTES = 1024 * 1024
"""The largest content of a kept file."""


class KeptFile:
    """One file of a connector. Backups contain it, and `ingestd restore` writes it again.

    ``folder``: the private folder of the pipeline; None: there is none. ``unsaved``: contents that stay in memory by name, in a
    process that only looks, such as `ingestd check`; None: `write` writes the file.
    """

    def __init__(self, folder: Path | None, name: str, *, unsaved: MutableMapping[str, bytes] | None) -> None:
        if not name or name.startswith(".") or "/" in name or "\0" in name:
            raise ValueError(
                f"{name!r} is not the name of a kept file: it must be one part of a path, without a first dot."
            )
        self._folder = folder
        self._name = name
        self._unsaved = unsaved

    def read(self) -> bytes | None:
        """Return the content; None: nothing was written yet.

        Raises:
            OSError: the file can't be read, or is larger than `MAX_BYTES`.
        """
        if self._unsaved is not None and self._name in self._unsaved:
            return self._unsaved[self._name]
        if self._folder is None:
            return None
        path = self._folder / self._name
        try:
            with path.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        if len(content) > MAX_BYTES:
            raise OSError(f"{path} has more than {MAX_BYTES} bytes, so this program did not write it.")
        return content

    def write(self, content: bytes) -> None:
        """Replace the content. After a crash the file has the former or the new one. Only its owner may read it (mode 0600).

        Raises:
            ValueError: ``content`` is larger than `MAX_BYTES`.
            OSError: the file can't be written.
        """
        if len(content) > MAX_BYTES:
            raise ValueError(f"A kept file has at most {MAX_BYTES} bytes; {self._name} would have {len(content)}.")
        if self._unsaved is not None or self._folder is None:
            if self._unsaved is not None:
                self._unsaved[self._name] = content
            return
        write_kept(self._folder, self._name, content)


def write_kept(folder: Path, name: str, content: bytes) -> None:
    """Write a kept file durably.

    Raises:
        OSError: the file can't be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = folder / f".{name}.part"
    with suppress(FileNotFoundError):  # a crash left it
        part.unlink()
    try:
        handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(folder / name)
    finally:
        part.unlink(missing_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
