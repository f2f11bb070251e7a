"""Connectors that were written for release 0.1.0 work in one more release, with a warning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import ingestd.sdk
import ingestd.sdk.testing
from ingestd.sdk import AcknowledgeLater, Acknowledgement, Batch, Connector, Cursor, Partition, SourceContext
from ingestd.sdk.testing import acknowledgement

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")

CONTEXT = SourceContext(pipeline="p", base=Path(), now=lambda: 0.0)


class NoOptions(BaseModel):
    """A source without settings."""


class Present(Connector):
    """A connector with the present names."""

    Options = NoOptions

    def __init__(self) -> None:
        super().__init__(NoOptions(), CONTEXT)
        self.calls: list[str] = []

    def partitions(self) -> Sequence[Partition]:
        """Return nothing."""
        return ()

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002
        """Yield nothing."""
        yield from ()

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:  # noqa: ARG002
        """Note the call."""
        self.calls.append(f"acknowledge {partition.name}")

    def reset(self) -> None:
        """Note the call."""
        self.calls.append("reset")


def _former(base: type[Any] = Present) -> type[Any]:
    class Former(base):  # type: ignore[misc]
        """A connector with the names of release 0.1.0."""

        def settled(self, partition: Partition, cursor: Cursor, settlement: Acknowledgement) -> None:
            self.calls.append(f"settled {partition.name}")
            super().settled(partition, cursor, settlement)

        def again(self) -> None:
            self.calls.append("again")
            super().again()

    return Former


def test_the_runtime_reaches_methods_that_have_the_former_names_and_their_super_calls() -> None:
    """The runtime calls the present names only."""
    with pytest.warns(DeprecationWarning, match="Former overrides") as caught:
        connector = _former()()
    connector.acknowledge(Partition(name="a"), {}, acknowledgement())
    connector.reset()
    assert connector.calls == ["settled a", "acknowledge a", "again", "reset"]
    name = f"{__name__}._former.<locals>.Former"
    end = "The release after this one no longer has the former name."
    assert [str(one.message) for one in caught] == [
        f"{name} overrides settled(); rename it to acknowledge(). {end}",
        f"{name} overrides again(); rename it to reset(). {end}",
    ]
    assert {one.filename for one in caught} == {__file__}


def test_a_former_connector_without_a_present_base_does_what_it_did() -> None:
    """`Connector` itself has the former names, so that `super()` finds them."""

    class Plain(Connector):
        Options = NoOptions
        calls: list[str]

        def partitions(self) -> Sequence[Partition]:
            return ()

        read = Present.read

    with pytest.warns(DeprecationWarning, match="Former overrides"):
        connector = _former(Plain)(NoOptions(), CONTEXT)
    connector.calls = []
    connector.acknowledge(Partition(name="a"), {}, acknowledgement())
    connector.reset()
    assert connector.calls == ["settled a", "again"]


def test_tests_of_a_package_may_call_the_former_names_of_a_present_connector() -> None:
    """A package is updated step by step."""
    connector: Any = Present()
    connector.settled(Partition(name="a"), {}, acknowledgement())
    connector.again()
    assert connector.calls == ["acknowledge a", "reset"]


def test_a_class_with_both_names_keeps_both(recwarn: pytest.WarningsRecorder) -> None:
    """A package may support both releases: its method with the present name may call the other one."""

    class Both(Present):
        def settled(self, partition: Partition, cursor: Cursor, settlement: Acknowledgement) -> None:  # noqa: ARG002
            self.calls.append("own")

        def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:
            self.settled(partition, cursor, acknowledgement)

    connector = Both()
    connector.acknowledge(Partition(name="a"), {}, acknowledgement())
    assert connector.calls == ["own"]
    assert not recwarn.list


def test_the_former_names_of_classes_and_functions_are_the_present_ones() -> None:
    """An import of a former name still works; another unknown name is an error as usual."""
    sdk, testing = vars(ingestd.sdk)["__getattr__"], vars(ingestd.sdk.testing)["__getattr__"]
    with pytest.warns(DeprecationWarning, match="is now Acknowledgement"):
        assert sdk("Settlement") is Acknowledgement
    with pytest.warns(DeprecationWarning, match="is now AcknowledgeLater"):
        assert sdk("SettleLater") is AcknowledgeLater
    with pytest.warns(DeprecationWarning, match="is now acknowledgement"):
        assert testing("settlement") is acknowledgement
    with pytest.raises(AttributeError, match=r"'ingestd\.sdk' has no attribute 'Settled'"):
        sdk("Settled")
