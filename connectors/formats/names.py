"""Names of files and folders: which files never hold data, and globs with ``**/``. This module performs no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NO_DATA = re.compile(
    r"\.|~\$|#.*#$|.*~$"  # hidden files, lock files of office programs, and files that editors save beside a file
    r"|.*\.(?:tmp|temp|part|partial|crdownload|download|opdownload|filepart|swp|swo)$"  # incomplete files
    r"|(?:desktop\.ini|(?:eh)?thumbs\.db|icon\r)$",  # files that Windows and macOS write into folders
    re.IGNORECASE | re.DOTALL,
)
_NO_DATA_FOLDER = re.compile(
    r"\.(?!\.?$)|__macosx$|\$recycle\.bin$|recycler$|system volume information$|lost\+found$|@eadir$|@tmp$|#recycle$|#snapshot$",
    re.IGNORECASE,
)
_ANY_FOLDERS = re.compile(r"(?<![^/])\*\*/")


def holds_no_data(base: str) -> bool:
    """Return True if a file with this name, without folders, is hidden, incomplete, or belongs to the system."""
    return _NO_DATA.match(base) is not None


def is_no_data_folder(base: str) -> bool:
    """Return True if a folder with this name, without its parents, is hidden, a recycle bin, or belongs to the system."""
    return _NO_DATA_FOLDER.match(base) is not None


def expand_glob(glob: str) -> Iterator[str]:
    """Yield the glob and its variants without ``**/``, because `fnmatch` requires at least one folder for ``**/``."""
    first, *others = _ANY_FOLDERS.split(glob)
    variants = [first]
    for piece in others:
        variants = [f"{variant}{folders}{piece}" for variant in variants for folders in ("**/", "")]
    yield from variants
