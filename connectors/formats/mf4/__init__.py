"""MF4: measurement files of version 4 of ASAM MDF."""

from connectors.formats.mf4.options import Mf4

__all__ = ["Mf4"]
