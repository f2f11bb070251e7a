"""MAT: files of MATLAB up to version 7.2."""

from connectors.formats.mat.options import Mat

__all__ = ["Mat"]
