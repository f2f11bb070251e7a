"""The system calls openat2 and renameat2, which Python does not offer, and their replacements for older kernels."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import stat
import sys
from functools import cache

_OPENAT2 = 437
"""The number of openat2 on every architecture in `_MACHINES`."""
_RENAMEAT2 = {"x86_64": 316, "aarch64": 276, "riscv64": 276, "ppc64le": 357, "s390x": 347, "armv7l": 382, "i686": 353}
_MACHINES = frozenset(_RENAMEAT2)
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_RENAME_NOREPLACE = 1
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.ENOTSUP})
_ATTEMPTS = 100
_OPEN_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags of every open. Without O_NONBLOCK, a pipe that replaced a file would block until it has a writer."""
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_LIBC = ctypes.CDLL(None, use_errno=True)


def open_beneath(folder: int, name: str, flags: int) -> int:
    """Open ``name`` below the open ``folder`` and return the descriptor. No part of the name may be a link.

    Raises:
        OSError: with ELOOP if a part is a link; with EXDEV if the name leads out of the folder.
    """
    parts = name.split("/")
    if any(part in {"", ".", ".."} for part in parts) or "\0" in name:
        raise OSError(errno.EXDEV, "The name leads out of its folder", name)
    if len(parts) == 1:
        return _open_directly(folder, name, flags)
    if has_openat2():
        return _openat2(folder, name, flags)
    return _open_by_parts(folder, parts, flags)


def _open_by_parts(folder: int, parts: list[str], flags: int) -> int:
    """Open the folders of the path one after the other, then its last part. No part may be a link."""
    above = folder
    try:
        for part in parts[:-1]:
            inner = _open_directly(above, part, os.O_PATH | os.O_DIRECTORY)
            if above != folder:
                os.close(above)
            above = inner
        return _open_directly(above, parts[-1], flags)
    finally:
        if above != folder:
            os.close(above)


def _open_directly(folder: int, name: str, flags: int) -> int:
    """Open a direct entry of the folder, which must not be a link."""
    try:
        return os.open(name, flags | _OPEN_FLAGS, dir_fd=folder)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


@cache
def has_openat2() -> bool:
    """Return True if the kernel has openat2 and this process may call it."""
    if platform.machine() not in _MACHINES:
        return False
    root = os.open("/", _FOLDER_FLAGS | os.O_CLOEXEC)
    try:
        os.close(_openat2(root, ".", _FOLDER_FLAGS))
    except OSError:
        return False
    finally:
        os.close(root)
    return True


def _openat2(folder: int, name: str, flags: int) -> int:
    # O_NOFOLLOW is not set, because it reports a link in place of a folder as "not a folder". O_PATH can't block, because it
    # does not open the content.
    flags |= os.O_CLOEXEC if flags & os.O_PATH else os.O_CLOEXEC | os.O_NONBLOCK
    how = _OpenHow(flags, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS)
    encoded = os.fsencode(name)
    number = errno.EAGAIN
    for _ in range(_ATTEMPTS):
        descriptor = _LIBC.syscall(
            ctypes.c_long(_OPENAT2), ctypes.c_int(folder), encoded, ctypes.byref(how), ctypes.c_size_t(24)
        )
        if descriptor >= 0:
            return int(descriptor)
        number = ctypes.get_errno()
        if number not in {errno.EINTR, errno.EAGAIN}:  # EAGAIN: the folders were renamed meanwhile
            break
    raise OSError(number, os.strerror(number), name)


def rename_exclusively(folder: int, name: str, target_folder: int, target: str) -> None:
    """Rename ``name`` in an open folder to ``target``, a free name in another folder.

    Raises:
        FileExistsError: there is something under the name ``target``.
        OSError: it can't be renamed; with EXDEV if the other folder is on another file system.
    """
    if not _renameat2(folder, name, target_folder, target) and not _link(folder, name, target_folder, target):
        # The file system supports neither renameat2 nor links. An empty file reserves the name, and the rename replaces it.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _OPEN_FLAGS, 0o600, dir_fd=target_folder))
        try:
            os.rename(name, target, src_dir_fd=folder, dst_dir_fd=target_folder)
        except OSError:
            os.unlink(target, dir_fd=target_folder)
            raise


def _renameat2(folder: int, name: str, target_folder: int, target: str) -> bool:
    """Rename by renameat2. Return False if the kernel or the file system lacks this call."""
    number = _RENAMEAT2.get(platform.machine())
    if number is None:
        return False
    sys.audit("os.rename", name, target, folder, target_folder)
    result = _LIBC.syscall(
        ctypes.c_long(number), ctypes.c_int(folder), os.fsencode(name), ctypes.c_int(target_folder),
        os.fsencode(target), ctypes.c_uint(_RENAME_NOREPLACE),
    )  # fmt: skip
    if result == 0:
        return True
    error = ctypes.get_errno()
    if error in _UNSUPPORTED:
        return False
    raise OSError(error, os.strerror(error), name, None, target)


def _link(folder: int, name: str, target_folder: int, target: str) -> bool:
    """Give the file its new name as a hard link, then remove the old name. Return False if the file system has no links."""
    try:
        os.link(name, target, src_dir_fd=folder, dst_dir_fd=target_folder, follow_symlinks=False)
    except FileExistsError:
        if not _is_same_file(folder, name, target_folder, target):  # else an attempt that crashed made this link
            raise
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise
        return False
    if _is_same_file(folder, name, target_folder, target):
        os.unlink(name, dir_fd=folder)
    return True


def _is_same_file(folder: int, name: str, target_folder: int, target: str) -> bool:
    linked = os.stat(target, dir_fd=target_folder, follow_symlinks=False)
    return os.path.samestat(linked, os.stat(name, dir_fd=folder, follow_symlinks=False))
