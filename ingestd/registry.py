"""Which connectors are installed: the entry points of the group ``ingestd.connectors``."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points

from pydantic import BaseModel

from ingestd.sdk import Connector
from ingestd.settings.node import nearest, shortened
from ingestd.settings.validation import ConnectorUnusable

GROUP = "ingestd.connectors"
_REASON_CHARACTERS = 300


def connector_names() -> tuple[str, ...]:
    """Return the names of the installed connectors, sorted. Some of them may fail to load."""
    return tuple(sorted({point.name for point in _points()}))


def connector_class(name: str) -> type[Connector]:
    """Return the connector called ``name``.

    No other connector is imported, so a broken connector does not affect the others.

    Raises:
        ConnectorUnusable: there is none, two distributions both have one, or it can't be loaded.
    """
    points = {_distribution(point): point for point in reversed(tuple(_points().select(name=name)))}
    if not points:
        names = connector_names()
        hint = nearest(name, names) or f" Installed are: {', '.join(names) or 'none'}."
        raise ConnectorUnusable(f"There is no connector '{shortened(name)}'.{hint}")
    if len(points) > 1:
        owners = " and ".join(sorted(points))
        raise ConnectorUnusable(f"The connector '{name}' is offered by {owners}. Uninstall all of them but one.")
    [(owner, point)] = points.items()
    return _loaded(point, owner)


def _points() -> EntryPoints:
    return _found_on(tuple(sys.path))


@lru_cache(maxsize=1)
def _found_on(_path: tuple[str, ...]) -> EntryPoints:
    """Return the connectors on an import path at the first call. The search reads a file of each installed distribution."""
    return entry_points(group=GROUP)


def _loaded(point: EntryPoint, owner: str) -> type[Connector]:
    what = f"The connector '{point.name}' of {owner}"
    try:
        found = point.load()
    except Exception as error:  # importing foreign code may fail in any way
        why = f"{type(error).__name__}: {shortened(str(error), _REASON_CHARACTERS)}"
        raise ConnectorUnusable(f"{what} can't be loaded: {why}. Repair or update {owner}, or uninstall it.") from error
    if not (isinstance(found, type) and issubclass(found, Connector)):
        raise ConnectorUnusable(f"{what} is no subclass of ingestd.sdk.Connector ({point.value}). Update {owner}.")
    options = getattr(found, "Options", None)
    if not (isinstance(options, type) and issubclass(options, BaseModel)):
        raise ConnectorUnusable(f"{what} declares no Options model ({point.value}). Update {owner}.")
    return found


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value
