from __future__ import annotations

import pytest

from ingestd.core.errors import MirrorCorrupt
from ingestd.daemon.failures import mirror_failures_alone


def test_a_mirrors_failure_comes_out_of_nested_groups_by_itself() -> None:
    corrupt = MirrorCorrupt("damaged")
    group = BaseExceptionGroup("outer", [ValueError(), BaseExceptionGroup("inner", [corrupt])])
    with pytest.raises(MirrorCorrupt) as caught, mirror_failures_alone():
        raise group
    assert caught.value is corrupt
    assert caught.value.__cause__ is group


def test_anything_else_stays_a_group_with_all_that_is_in_it() -> None:
    with pytest.raises(ExceptionGroup) as caught, mirror_failures_alone():
        raise ExceptionGroup("outer", [ValueError("a"), KeyError("b")])
    assert len(caught.value.exceptions) == 2


def test_what_is_no_group_passes() -> None:
    with pytest.raises(ValueError, match="alone"), mirror_failures_alone():
        raise ValueError("alone")
