"""Files below a root folder, reached from the descriptor of the root and never over a link.

A person who may write into a watched folder can replace any name in it at any moment. So every open, rename, link, unlink and
mkdir below a watched folder goes through this package. No other code passes a name in a watched folder to the system
(`docs/adr/0014-files-by-descriptor.md`).
"""

from connectors.beneath.folder import Folder, NotRegularFile
from connectors.beneath.rooted_path import LeadsOutside, OpenFolders, RootedPath, path_below

__all__ = ["Folder", "LeadsOutside", "NotRegularFile", "OpenFolders", "RootedPath", "path_below"]
