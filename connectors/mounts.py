"""Mounts: the mount that holds a folder, its kind of file system, and the guard against unmounted shares."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from connectors.beneath import Folder, RootedPath
from connectors.filesystem import describe_error, real_path
from ingestd.sdk import SourceUnavailable, SourceUnmounted

_OCTAL = re.compile(r"\\([0-7]{3})")
# On these file systems, writes of other machines cause no events. A self-test can't show this: its own write causes an event.
_REMOTE = re.compile(
    r"(nfs\d?|cifs|smb\d?|smbfs|9p|fuse|fuse\..*|afs|ceph|glusterfs|lustre|gfs2?|ocfs2|virtiofs|vboxsf|prl_fs|vmhgfs)$"
)
# On these file systems, files have no ctime, or a program can set the ctime.
_WITHOUT_CHANGE_TIME = re.compile(r"(v?fat|msdos|exfat|fuse|fuse\..*|vboxsf|prl_fs|vmhgfs)$")
_TABLE = Path("/proc/self/mountinfo")
_TABLE_SECONDS = 30


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A mounted file system. ``point``: the mount point. ``kind``: ``ext4``, ``nfs4``, ``fuse.sshfs`` and so on."""

    point: str
    kind: str

    @property
    def is_remote(self) -> bool:
        """True if other machines can change the file system without events on this machine."""
        return _REMOTE.match(self.kind) is not None

    @property
    def is_layered(self) -> bool:
        """True if changes of a lower layer may cause no events."""
        return self.kind in {"overlay", "aufs", "unionfs"}


def find_mount(path: str, table: str) -> Mount | None:
    """Return the mount that holds an absolute path without links. ``table``: the text of ``/proc/self/mountinfo``."""
    held = [mount for _, mount in _read_table(table) if f"{path}/".startswith(mount.point.rstrip("/") + "/")]
    return max(reversed(held), key=lambda mount: len(mount.point), default=None)  # the last mount hides earlier mounts


def _read_table(table: str) -> Iterator[tuple[int, Mount]]:
    """Yield the device and the mount of each line."""
    for line in table.splitlines():
        words = line.split(" ")
        if len(words) >= 10 and "-" in words[6:]:
            major, _, minor = words[2].partition(":")
            yield (
                os.makedev(int(major), int(minor)),
                Mount(point=_unescaped(words[4]), kind=words[words.index("-", 6) + 1]),
            )


def _unescaped(point: str) -> str:
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), point)


def current_mount(folder: Path, table: Path = _TABLE) -> Mount | None:
    """Return the mount that holds a folder now; None if the system has no mount table."""
    return find_mount(str(real_path(folder)), _table_text(table))


def has_change_time(device: int, table: Path = _TABLE) -> bool:
    """Return True if files on a device have a reliable ctime. ``device``: ``st_dev`` of a file's status."""
    kind = _kinds(table, int(time.monotonic() // _TABLE_SECONDS)).get(device, "")
    return _WITHOUT_CHANGE_TIME.match(kind) is None


@lru_cache(maxsize=1)
def _kinds(table: Path, period: int) -> Mapping[int, str]:
    """Return the kinds of the mounted file systems by device. The table is read once for each value of ``period``."""
    del period
    return {device: mount.kind for device, mount in _read_table(_table_text(table))}


def _table_text(table: Path) -> str:
    """Return the mount table; empty if the system has none."""
    try:
        return table.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def expected_point(path: str, mount: Mount, table: str) -> str:
    """Return the mount point that should hold ``path`` instead of ``mount``; empty if there is none.

    ``table``: the text of ``/etc/fstab``. A line with ``noauto`` is ignored, because such a mount may be missing on purpose.
    """
    words = (line.split() for line in table.splitlines() if not line.lstrip().startswith("#"))
    points = (_unescaped(one[1]).rstrip("/") for one in words if len(one) >= 4 and "noauto" not in one[3].split(","))
    holding = (point for point in points if f"{path}/".startswith(f"{point}/"))
    return max((point for point in holding if len(point) > len(mount.point.rstrip("/"))), key=len, default="")


class MountGuard:
    """Distinguishes an unmounted share from an empty share.

    ``canary``: a file that is in the folder while its share is mounted; empty: there is none. Without a canary, the guard
    remembers the mount of the folder, and `check` fails if this mount is missing. After a restart, the guard knows only the
    mounts in ``table``, the path of the machine's fstab.
    """

    def __init__(self, folder: Path, canary: str, table: Path = Path("/etc/fstab")) -> None:
        self._folder = folder
        self._table = table
        self._canary = canary
        self._point = ""
        self._seen: tuple[int, int] | None = None

    def check(self) -> None:
        """Check that the share is mounted, if the folder exists.

        Raises:
            SourceUnavailable: the share is not mounted.
        """
        if self._canary:
            if not self._holds_canary():
                raise SourceUnmounted(
                    f"The folder {self._folder} does not hold {self._canary} (canary), so its share is not mounted. Its files"
                    " do not count as removed. Mount it, or put that file there."
                )
            return
        identity = self._identity()
        if identity is not None and identity == self._seen:
            return  # an unchanged folder is on the same mount; reading a long mount table is expensive
        path = str(real_path(self._folder))
        mount = find_mount(path, _table_text(_TABLE))
        if mount is None:
            return
        if len(mount.point) < len(self._point):
            raise SourceUnmounted(
                f"The folder {self._folder} was on {self._point}, which is not mounted any more. Its files do not count as"
                " removed. Mount it again; if it is meant to be a plain folder now, restart ingestd."
            )
        if expected := expected_point(path, mount, _table_text(self._table)):
            raise SourceUnmounted(
                f"The folder {self._folder} belongs to {expected}, which {self._table} names and which is not mounted. Its files"
                " do not count as removed. Mount it; if it is meant to be a plain folder, remove that line or mark it noauto."
            )
        self._point = mount.point
        self._seen = identity

    def _identity(self) -> tuple[int, int] | None:
        try:
            with Folder.open_root(self._folder, is_listed=False) as folder:
                return folder.identity
        except OSError:
            return None  # the scan reports the error

    def _holds_canary(self) -> bool:
        canary = RootedPath(self._folder, self._canary)
        try:
            return stat.S_ISREG(canary.status().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise SourceUnavailable(f"{canary} can't be examined: {describe_error(error)}") from error
