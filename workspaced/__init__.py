"""workspaced: the workspace service of the interface document, on one machine or several."""

from importlib.metadata import version

__version__ = version("ingestd")
