"""The module for Zstandard: `compression.zstd` of Python 3.14, or its backport for older versions of Python."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["zstd"]
