"""Fixed width: fields at fixed positions in the line."""

from connectors.formats.fixed_width.options import FixedWidth

__all__ = ["FixedWidth"]
