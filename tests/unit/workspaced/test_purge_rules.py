"""One workspace that can't be purged, and the other workspaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from workspaced.resources.workspaces import retention
from workspaced.storage.port import Transaction
from workspaced.storage.store import Store


class _Store:
    """A store with two deleted workspaces; it executes work at once."""

    async def read(self, _work: object) -> list[tuple[int, str]]:
        return [(1, "first"), (2, "second")]

    async def write(self, work: Callable[[Any], int], *, weight: int = 1) -> int:
        del weight
        return work(self)

    def run(self, *_: object) -> int:
        """Change one row."""
        return 1


async def test_a_workspace_that_cannot_be_purged_does_not_keep_the_others() -> None:
    # contract G25
    emptied: list[int] = []

    def step(_tx: Transaction, number: int, _most: int) -> int:
        if number == 1:
            raise LookupError("a row of this workspace is broken")
        emptied.append(number)
        return 0

    with pytest.raises(ExceptionGroup, match="could not be purged") as raised:
        await retention.purge(cast("Store", _Store()), (step,), before=1, now=1)
    assert emptied == [2]
    assert raised.value.exceptions[0].__notes__ == ["Workspace first could not be purged."]
