"""The encoding of file names and of the standard streams."""

from __future__ import annotations

import os
import sys


def require_utf8_mode() -> None:
    """Start this program again in Python's UTF-8 mode, with the same process id, if the locale has another encoding.

    Otherwise file names, and the keys made from them, would depend on the locale: with ISO-8859-1 each name is valid text, but a
    name in UTF-8 becomes another text.
    """
    if sys.getfilesystemencoding() != "utf-8":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - this program
