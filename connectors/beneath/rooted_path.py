"""A path below a root folder. Each operation opens the root, and follows the path from the root's descriptor."""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from contextlib import ExitStack
from pathlib import Path

import msgspec

from connectors.beneath.folder import Folder
from connectors.filesystem import real_path

_MOST_LINKS = 40
"""The maximum number of links that the kernel follows in one path."""


class LeadsOutside(OSError):
    """A link or a name leads out of the root folder."""


class RootedPath(msgspec.Struct, frozen=True):
    """The path ``name`` below the folder ``root``. An empty ``name`` means the root itself.

    Links in the path of the root are followed, because a person configured this path. Links in the name are never followed.
    """

    root: Path
    name: str = ""

    @property
    def path(self) -> Path:
        """The whole path, for messages."""
        return self.root / self.name if self.name else self.root

    def __str__(self) -> str:
        return str(self.path)

    @property
    def base(self) -> str:
        """The last part of the name."""
        return self.name.rpartition("/")[2]

    @property
    def parent(self) -> RootedPath:
        """The path of the folder that holds this path. For the root, it is the root's parent folder, as a separate root."""
        if not self.name:
            return RootedPath(self.root.parent)
        return RootedPath(self.root, self.name.rpartition("/")[0])

    def __truediv__(self, name: str) -> RootedPath:
        """Return the path of a name below this path."""
        if not name:
            return self
        return RootedPath(self.root, f"{self.name}/{name}" if self.name else name)

    def with_base(self, base: str) -> RootedPath:
        """Return the path of another name in the same folder."""
        return self.parent / base

    def open_folder(self, *, is_listed: bool = True) -> Folder:
        """Open the folder at this path; see `Folder.open_root`.

        Raises:
            OSError: it does not exist, is no folder, or is reached over a link below the root.
        """
        if not self.name:
            return Folder.open_root(self.root, is_listed=is_listed)
        with Folder.open_root(self.root, is_listed=False) as root:
            return root.subfolder(self.name, is_listed=is_listed)

    def open_nearest(self) -> Folder:
        """Open the folder, or the closest existing folder above it.

        Raises:
            OSError: the closest existing path is no folder, or can't be opened.
        """
        try:
            return self.open_folder()
        except FileNotFoundError:
            if not self.name and self.root == self.root.parent:
                raise
            return self.parent.open_nearest()

    def make_folder(self) -> Folder:
        """Create the folder and its missing parents durably, and open the folder."""
        try:
            return self.open_folder()
        except FileNotFoundError:
            with self.parent.make_folder() as above:
                above.make(self.base or self.root.name)
            return self.open_folder()

    def status(self) -> os.stat_result:
        """Return the status of the file or folder at this path; for a link, the status of the link."""
        with self.parent.open_folder(is_listed=False) as folder:
            return folder.status(self.base)

    def open_file(self) -> int:
        """Open a regular file for reading and return its descriptor; see `Folder.open_file`."""
        with self.parent.open_folder(is_listed=False) as folder:
            return folder.open_file(self.base)

    def resolve(self) -> RootedPath:
        """Return the path with its links resolved, if they stay below the root. Parts that do not exist are kept as they are.

        The result has no link. If a link later replaces a part of the result, opening the path fails.

        Raises:
            LeadsOutside: a link leads out of the root.
            OSError: with ELOOP for a link that leads to itself.
        """
        waiting, found, links = self.name.split("/")[::-1], list[str](), 0
        with Folder.open_root(self.root, is_listed=False) as root:
            while waiting:
                part = waiting.pop()
                if part in {"", "."}:
                    continue
                if part == "..":
                    if not found:
                        raise self._leads_outside()
                    found.pop()
                    continue
                target = _read_link(root, found, part)
                if target is None:
                    found.append(part)
                    continue
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(self.path))
                if target.startswith("/"):
                    target, found = self._below_root(target), []
                waiting += target.split("/")[::-1]
        return RootedPath(self.root, "/".join(found))

    def _below_root(self, target: str) -> str:
        for root in dict.fromkeys((str(self.root.absolute()), str(real_path(self.root)))):
            if target == root or target.startswith(root.rstrip("/") + "/"):
                return target[len(root) :]
        raise self._leads_outside()

    def _leads_outside(self) -> LeadsOutside:
        return LeadsOutside(errno.EXDEV, f"It leads out of the folder {self.root}", str(self.path))


def _read_link(root: Folder, above: list[str], base: str) -> str | None:
    """Return the target of a link; None for anything else."""
    try:
        with (
            root.subfolder("/".join(above), is_listed=False)
            if above
            else Folder(os.dup(root.descriptor), root.path) as folder
        ):
            return folder.read_link(base) if stat.S_ISLNK(folder.status(base).st_mode) else None
    except (FileNotFoundError, NotADirectoryError):
        return None


def path_below(path: Path, root: Path) -> RootedPath:
    """Return ``path`` as a path below ``root`` if it passes through this folder; else as a separate root.

    Links are followed up to the folder ``root``, but not below it.
    """
    real_root = real_path(root).parts
    waiting, found, links = list(path.absolute().parts[:0:-1]), ["/"], 0
    while True:
        if tuple(found) == real_root:
            below = posixpath.normpath("/".join(reversed(waiting)))
            if below.split("/")[0] != "..":
                return RootedPath(root, "" if below == "." else below)
            waiting = below.split("/")[::-1]
        if not waiting:
            return RootedPath(path)
        part = waiting.pop()
        if part == "..":
            found = found[:-1] or ["/"]
            continue
        try:
            target = str(Path(*found, part).readlink())
        except OSError:  # it is no link, or does not exist
            found.append(part)
            continue
        links += 1
        if links > _MOST_LINKS:
            return RootedPath(path)
        if target.startswith("/"):
            found = ["/"]
        waiting += [step for step in target.split("/")[::-1] if step not in {"", "."}]


class OpenFolders(ExitStack):
    """A context that opens each requested folder once, and keeps it open until the end."""

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[RootedPath, Folder] = {}

    def get(self, path: RootedPath) -> Folder:
        """Return the open folder of this path."""
        if path not in self._open:
            self._open[path] = self.enter_context(path.open_folder())
        return self._open[path]

    def make(self, path: RootedPath) -> Folder:
        """Return the open folder of this path, which is made if it does not exist."""
        if path not in self._open:
            self._open[path] = self.enter_context(path.make_folder())
        return self._open[path]
