"""How a command names a key: by its id, or by a name that only one has."""

from __future__ import annotations

from workspaced.cli.failure import Failure
from workspaced.security import key_store
from workspaced.storage.port import ReadTransaction


def the_key(reader: ReadTransaction, name: str) -> str:
    """The id of the one key with this id or name.

    Raises:
        Failure: there is none, or several.
    """
    found = key_store.keys_named(reader, name)
    if not found:
        raise Failure(f"There is no key '{name}' that is not revoked; `workspaced keys list` shows all.", 1)
    if len(found) > 1:
        raise Failure(f"Several keys are named '{name}': {', '.join(found)}. Say which by its id.", 1)
    return found[0]
