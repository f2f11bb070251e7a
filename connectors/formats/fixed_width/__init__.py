"""Fixed width: fields at fixed positions in the line."""

from connectors.formats.fixed_width.options import FixedWidth
from connectors.formats.fixed_width.reader import Column, read_fixed_width

__all__ = ["Column", "FixedWidth", "read_fixed_width"]
