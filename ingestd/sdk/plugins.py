"""Plug-ins: classes that installed distributions offer by entry points, such as connectors and formats."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any

import msgspec

from ingestd.core.errors import IngestdError
from ingestd.core.phrases import nearest, shortened
from ingestd.sdk.connector import CONTRACT, Connector

_REASON_CHARACTERS = 300


class PluginUnusable(IngestdError):
    """A plug-in can't be used; the sentence has the reason and what to do. ``known``: a plug-in of this name is installed."""

    def __init__(self, sentence: str, *, known: bool) -> None:
        super().__init__(sentence)
        self.known = known


class PluginGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of plug-in: a group of entry points for subclasses of ``base``.

    ``noun`` names the kind in sentences. ``contract``: the version that the class attribute ``contract`` of a plug-in must have.
    ``also_called``: other names of each plug-in; if a person uses such a name, the error suggests the plug-in.
    """

    name: str
    noun: str
    base: type
    contract: int
    also_called: Mapping[str, str] = {}

    def names(self) -> Sequence[str]:
        """Return the names of the installed plug-ins, sorted. Some of them may fail to load."""
        return tuple(sorted({point.name for point in self._points()}))

    def load(self, name: str) -> type:
        """Return the class called ``name``. No other plug-in is imported, so a broken plug-in does not affect other plug-ins.

        Raises:
            PluginUnusable: no plug-in has the name, two distributions offer it, or it can't be loaded.
        """
        points = _by_distribution(self.name, name, tuple(sys.path))
        if not points:
            raise PluginUnusable(f"There is no {self.noun} '{shortened(name)}'.{self._hint(name)}", known=False)
        if len(points) > 1:
            owners = " and ".join(sorted(points))
            raise PluginUnusable(
                f"The {self.noun} '{name}' is offered by {owners}. Uninstall all of them but one.", known=True
            )
        [(owner, point)] = points.items()
        return self._loaded(point, owner)

    def _hint(self, name: str) -> str:
        names = self.names()
        word = name.lower().replace("-", "_")
        for known, words in self.also_called.items():
            if known in names and word in words.split():
                return f" Did you mean '{known}'?"
        return nearest(name, names) or f" Installed are: {', '.join(names) or 'none'}."

    def _points(self) -> EntryPoints:
        found: EntryPoints = _found_on(tuple(sys.path)).select(group=self.name)
        return found

    def _loaded(self, point: EntryPoint, owner: str) -> type:
        what = f"The {self.noun} '{point.name}' of {owner}"
        try:
            found = point.load()
        except Exception as error:  # importing foreign code may fail in any way
            why = f"{type(error).__name__}: {shortened(str(error), _REASON_CHARACTERS)}"
            raise PluginUnusable(
                f"{what} can't be loaded: {why}. Repair or update {owner}, or uninstall it.", known=True
            ) from error
        if not (isinstance(found, type) and issubclass(found, self.base)):
            public = f"{self.base.__module__.rpartition('.')[0]}.{self.base.__name__}"
            raise PluginUnusable(f"{what} is no subclass of {public} ({point.value}). Update {owner}.", known=True)
        contract = getattr(found, "contract", None)
        if contract != self.contract:
            raise PluginUnusable(
                f"{what} is for version {contract} of the {self.noun} contract; this ingestd has version {self.contract}. "
                f"Install a version of it for contract {self.contract}.",
                known=True,
            )
        return found


CONNECTORS = PluginGroup(
    name="ingestd.connectors",
    noun="connector",
    base=Connector,
    contract=CONTRACT,
    also_called={
        "directory": "folder folders dir dropfolder drop_folder drop watch csv excel xlsx json xml parquet",
        "database": "sql db table postgres postgresql sqlite mysql mariadb oracle sqlserver sql_server mssql odbc",
        "remote": "sftp ssh ftp s3 minio azure blob bucket",
        "http": "https rest api url web",
        "push": "webhook webhooks listen listener",
        "log": "logs tail",
        "mqtt": "broker mosquitto",
        "opcua": "opc opc_ua ua",
    },
)


def load_connector(name: str) -> type[Connector]:
    """Return the connector called ``name``.

    Raises:
        PluginUnusable: no plug-in has the name, two distributions offer it, or it can't be loaded.
    """
    found: type[Connector] = CONNECTORS.load(name)
    return found


@lru_cache(maxsize=1)
def _found_on(_path: tuple[str, ...]) -> Any:  # Python 3.11 returns another class than later versions
    """Return all entry points on an import path. Cached for all groups, because one file of each distribution is read."""
    return entry_points()


@lru_cache(maxsize=256)
def _by_distribution(group: str, name: str, path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """Return the entry points with a name, by distribution.

    Cached, because every pipeline needs the result, and a file is parsed to find the name of a distribution.
    """
    return {_distribution(point): point for point in reversed(tuple(_found_on(path).select(group=group, name=name)))}


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value
