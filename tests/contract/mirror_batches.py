"""The promises of every mirror about `IntakeStore.batch`, as tests that each implementation inherits."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress

import pytest

from ingestd.core.guard import Guard
from ingestd.mirror.port import Claim
from tests.contract.mirror_deliverable import SINK, work
from tests.contract.mirror_intake import IntakeStage, Row, entries

DEADLINE = 10.0


class BatchSuite:
    """Inherit it and define ``stage``."""

    @pytest.fixture
    def stage(self) -> IntakeStage:
        raise NotImplementedError

    async def claim(self, stage: IntakeStage) -> Claim | None:
        found: Claim | None = None
        for lane in await stage.deliverable.lanes():
            found = found or await stage.deliverable.claim(lane.id, max_items=100, max_bytes=100_000)
        return found

    async def test_a_batch_is_delivered_only_after_its_end(self, stage: IntakeStage) -> None:
        with stage.intake.batch("pipe") as written:
            stage.read([("a", "1")], name="p")
            stage.read([("b", "2")], name="q")
            assert await self.claim(stage) is None
            before = written.is_durable
        assert (before, written.is_durable) == (False, True)
        assert len(await stage.deliver_all()) == 2

    async def test_a_partition_of_a_batch_sees_what_the_others_have_written(self, stage: IntakeStage) -> None:
        stage.read([("a", "1"), ("b", "2")], name="p", deletes="remove")
        await stage.deliver_all()
        with stage.intake.batch("pipe"):
            stage.read([("c", "3"), ("d", "4")], name="q", deletes="remove")
            # Vanished entries and the guard are read, and not only written.
            assert stage.read([("c", "3")], name="q", deletes="remove", version=2).removed == 1
            held = stage.read([], name="q", deletes="remove", version=3, guard=Guard(empty=True))
            assert held.withheld is not None
            assert stage.open("q").withheld == {"version": 3}
        assert [key for kind, key, _ in await stage.deliver_all() if kind == "create"] == ["c"]

    async def test_an_exception_undoes_no_completed_call(self, stage: IntakeStage) -> None:
        with suppress(ZeroDivisionError), stage.intake.batch("pipe") as written:
            stage.read([("a", "1")], name="p")
            state = stage.open("q")
            stage.intake.begin_run(state.id, snapshot=True, whole=True)
            raise ZeroDivisionError
        assert written.is_durable
        stage.restart()
        assert (stage.open("p").cursor, stage.open("q").cursor) == ({"version": 1}, None)
        assert [key for _, key, _ in await stage.deliver_all()] == ["a"]

    async def test_a_call_that_fails_is_undone_alone(self, stage: IntakeStage) -> None:
        with stage.intake.batch("pipe"):
            stage.read([("a", "1")], name="p")
            state = stage.open("q")
            run = stage.intake.begin_run(state.id, snapshot=True, whole=True)
            with pytest.raises(TypeError):  # the entries are written before the facts
                stage.intake.commit(
                    run, entries=entries([("b", "2")]), records=1, rejects=(), cursor={}, facts={"bad": object()}  # type: ignore[dict-item]
                )  # fmt: skip
            stage.intake.fail_run(run, "It failed.", broken=False)
            stage.read([("c", "3")], name="r")
        assert [key for _, key, _ in await stage.deliver_all()] == ["a", "c"]

    @pytest.mark.parametrize("when", ["between the changes", "after the changes"])
    async def test_values_that_a_batch_replaces_are_not_in_flight_together_with_the_new_one(
        self, stage: IntakeStage, when: str
    ) -> None:
        stage.read([("a", "1")], name="p")
        claims: list[Claim | None] = []
        with stage.intake.batch("pipe"):
            stage.read([("a", "2")], name="q")
            if when == "between the changes":
                claims.append(await self.claim(stage))
            stage.read([("a", "3")], name="r")
            if when == "after the changes":
                claims.append(await self.claim(stage))
        claims.append(await self.claim(stage))
        open_claims = [claim for claim in claims if claim is not None]
        assert len(open_claims) == 1, "two values of one key are in flight"
        await stage.deliverable.acknowledge(open_claims[0])
        sent = work(open_claims[0]) + await stage.deliver_all()
        assert sent[-1][1:] == ("a", "3")

    def test_another_thread_waits_for_the_end_of_a_batch(self, stage: IntakeStage) -> None:
        """Approving a run takes the same locks in another order; it must neither be mixed in nor stop both threads."""
        guard = Guard(empty=True)
        stage.read([("a", "1")], name="p", deletes="remove")
        held = stage.read([], name="p", deletes="remove", version=2, guard=guard).withheld
        assert held is not None
        number, approved = held.run, threading.Event()

        def approve() -> None:
            stage.intake.approve(number)
            approved.set()

        other = threading.Thread(target=approve, daemon=True)
        with stage.intake.batch("pipe"):
            other.start()
            self.read_all(stage, [("b", "2")])
            assert not approved.is_set()
        other.join(DEADLINE)
        assert approved.is_set()

    def read_all(self, stage: IntakeStage, rows: Sequence[Row]) -> None:
        for number in range(20):
            stage.read(rows, name=f"other-{number}")

    def test_a_cursor_is_known_before_the_partition_is_opened(self, stage: IntakeStage) -> None:
        assert stage.intake.known_cursor("pipe", "p", SINK, "d") is None
        stage.read([("a", "1")], name="p", version=4)
        assert stage.intake.known_cursor("pipe", "p", SINK, "d") == {"version": 4}
        assert stage.intake.known_cursor("pipe", "p", SINK, "another mapping") is None
        assert stage.intake.known_cursor("other", "p", SINK, "d") is None
