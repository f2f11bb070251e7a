"""The folder of logs: lists files, follows links, and opens files."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from connectors.beneath import Folder, NotRegularFile, RootedPath
from connectors.files.identity import Identity
from connectors.filesystem import describe_error, real_path
from connectors.log.names import LogNames
from connectors.utf8 import is_utf8
from ingestd.sdk import SourceBroken, SourceUnavailable


class LogFolder:
    """The folder of one source.

    A link with the name of a log may lead to a file in the folder that belongs to no other log. Then this file is the log's
    file, and is listed under the name of the link. ``unread``: why other links with the name of a log are not read.
    ``repeated``: sentences about links to a file that is read under another name. Both are by link, for the last listing.
    """

    def __init__(self, path: Path, names: LogNames) -> None:
        self.path = path
        self._names = names
        self._targets: Mapping[str, str] = {}
        self.unread: Mapping[str, str] = {}
        self.repeated: Mapping[str, str] = {}

    def files(self) -> Mapping[str, Identity]:
        """List the regular files of the folder, and return their identities by name.

        Raises:
            SourceUnavailable: the folder does not exist or can't be listed.
        """
        found: dict[str, Identity] = {}
        links: dict[str, str] = {}
        try:
            with Folder.open_root(self.path) as folder, folder.entries() as entries:
                for entry in entries:
                    try:
                        if entry.is_symlink() and self._names.is_log(entry.name) and is_utf8(entry.name):
                            links[entry.name] = folder.read_link(entry.name)
                            continue
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # removed after the folder was listed
                    if stat.S_ISREG(status.st_mode) and is_utf8(entry.name):
                        found[entry.name] = Identity.from_status(status)
        except OSError as error:
            raise SourceUnavailable(f"The folder {self.path} can't be listed: {describe_error(error)}") from error
        self._follow_links(found, links)
        return found

    def _follow_links(self, found: dict[str, Identity], links: Mapping[str, str]) -> None:
        """List each target under the name of its link. ``links``: for each link, the path to which it leads."""
        targets: dict[str, str] = {}
        unread: dict[str, str] = {}
        repeated: dict[str, str] = {}
        for name, path in sorted(links.items()):
            parent, base = os.path.split(path)
            if parent and real_path(self.path / parent) != real_path(self.path):
                unread[name] = (
                    f"{name} is a link that leads out of {self.path}, so it is not read. Set path to that folder."
                )
            elif base in targets.values() or self._names.log_of(base) not in {name, None}:
                repeated[name] = f"{name} is a link to {base}, which is read under another name."
            elif base not in found:
                unread[name] = f"{name} is a link to {base}, and {self.path} holds no regular file of this name."
            else:
                found[name] = found.pop(base)
                targets[name] = base
        self._targets, self.unread, self.repeated = targets, unread, repeated

    def link_to(self, base: str) -> str:
        """Return the name of the link that leads to the file ``base``; ``base`` itself if there is no link."""
        return next((name for name, target in self._targets.items() if target == base), base)

    def _place(self, name: str) -> RootedPath:
        return RootedPath(self.path, self._targets.get(name, name))

    def is_readable(self, name: str) -> bool:
        """Return False if the file can't be opened. A missing file counts as readable."""
        try:
            os.close(self._place(name).open_file())
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def open(self, name: str, identity: Identity) -> io.FileIO | None:
        """Open a file. Return None if the name no longer belongs to the file with ``identity``.

        Raises:
            SourceBroken: ingestd has no permission to read the file.
            SourceUnavailable: the file system does not respond.
        """
        try:
            descriptor = self._place(name).open_file()
        except (FileNotFoundError, NotRegularFile):
            return None
        except PermissionError as error:
            raise SourceBroken(f"{name} can't be opened: {error.strerror}. Allow ingestd's user to read it.") from error
        except OSError as error:
            raise SourceUnavailable(f"{self.path / name} can't be opened: {describe_error(error)}") from error
        if Identity.from_status(os.fstat(descriptor))[:2] != identity[:2]:
            os.close(descriptor)
            return None
        return os.fdopen(descriptor, "rb", buffering=0)
