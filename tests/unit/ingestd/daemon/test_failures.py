from __future__ import annotations

import pytest

from ingestd.core.errors import MirrorCorrupt
from ingestd.daemon.part_supervisor import mirror_failures_alone


def test_a_mirror_failure_is_unwrapped_from_nested_groups() -> None:
    corrupt = MirrorCorrupt("damaged")
    group = BaseExceptionGroup("outer", [ValueError(), BaseExceptionGroup("inner", [corrupt])])
    with pytest.raises(MirrorCorrupt) as caught, mirror_failures_alone():
        raise group
    assert caught.value is corrupt
    assert caught.value.__cause__ is group


def test_a_group_of_other_failures_is_unchanged() -> None:
    with pytest.raises(ExceptionGroup) as caught, mirror_failures_alone():
        raise ExceptionGroup("outer", [ValueError("a"), KeyError("b")])
    assert len(caught.value.exceptions) == 2


def test_an_exception_outside_a_group_is_unchanged() -> None:
    with pytest.raises(ValueError, match="alone"), mirror_failures_alone():
        raise ValueError("alone")
