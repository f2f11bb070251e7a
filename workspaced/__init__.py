"""workspaced: the workspace service of the interface document, on one machine or several."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("ingestd")
except PackageNotFoundError:  # this distribution has only the service
    __version__ = version("workspaced")
