"""One key repeated many times in one mass update."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaced.resources.data_sinks.change_effects import least_of
from workspaced.resources.data_sinks.values import Change, StoredEntry, Tally

_NOON, _LATER = "2026-05-01T12:00:00Z", "2026-05-01T13:00:00Z"


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("items", "counts", "left"),
    [
        ([{"value": "1"}, {"value": "2"}, {"value": "2"}], (1, 1, 1, 0), "2"),
        ([{"delete": True}, {"value": "1"}, {"delete": True}], (1, 0, 0, 2), None),
        ([{"value": "1"}, {"delete": True}, {"value": "3"}], (1, 1, 0, 1), "3"),
        ([{"value": "a", "observedAt": _LATER}, {"value": "b", "observedAt": _NOON}], (0, 1, 1, 0), "a"),
    ],
)
async def test_changes_of_a_key_are_counted_in_order(
    http: httpx.AsyncClient, sink: str, items: list[dict[str, Any]], counts: tuple[int, ...], left: str | None
) -> None:
    expected = dict(zip(("created", "updated", "unchanged", "deleted"), counts, strict=True))
    if expected["created"] == 0 or items[0].get("delete") or items[1].get("delete"):
        await http.post(f"{sink}/mass", json={"key": "k", "value": "old"})
    body = [{"key": "k", **item} for item in items] + [{"key": "other", "value": "x"}]
    response = await http.post(f"{sink}/mass", json=body, headers={"Prefer": "return=minimal"})
    expected["created"] += 1
    assert response.json() == {"accepted": len(body), **expected}
    entries = {entry["key"]: entry["value"] for entry in (await http.get(sink)).json()["entries"]}
    assert entries == {"other": "x", **({"k": left} if left is not None else {})}


async def test_five_thousand_changes_of_a_key_are_not_five_thousand_statements(
    http: httpx.AsyncClient, sink: str
) -> None:
    body = [{"key": "k", "value": str(number)} for number in range(5_000)]
    response = await http.post(f"{sink}/mass", json=body, headers={"Prefer": "return=minimal"})
    assert response.json() == {"accepted": 5_000, "created": 1, "updated": 4_999, "unchanged": 0, "deleted": 0}
    entry = await http.get(f"{sink}/k")
    assert entry.json()["value"] == "4999"
    assert entry.headers["ETag"] == '"1"'  # written once


_CHANGE = st.builds(
    lambda value, kind, observed, remove: Change("k", None if remove else value, kind, None, observed, remove),
    st.sampled_from("ab"),
    st.sampled_from([None, "scalar", "text"]),
    st.sampled_from([None, 1, 2]),
    st.booleans(),
)
_ENTRY = st.builds(
    lambda value, observed: StoredEntry(1, "i", "k", value, "scalar", observed, 1, 0, 0, "", ""),
    st.sampled_from("ab"),
    st.sampled_from([None, 1, 2]),
)


@given(changes=st.lists(_CHANGE, min_size=1, max_size=8), before=st.none() | _ENTRY)
def test_the_reduced_changes_have_the_result_of_all_changes(changes: list[Change], before: StoredEntry | None) -> None:
    least, counts = least_of(changes, before)
    assert len(least) <= 2
    assert counts.accepted == len(changes)
    assert _end(least, before)[0] == _end(changes, before)[0]
    assert counts == _end(changes, before)[1]


def _end(changes: list[Change], before: StoredEntry | None) -> tuple[tuple[Any, ...] | None, Tally]:
    """Apply one change after the other, as the service does (contract M2, M6, M8)."""
    state = (before.value, before.data_type, before.observed_at) if before else None
    total = Tally()
    for _, value, kind, _, observed, remove, _ in changes:
        total += Tally(accepted=1)
        if state and observed is not None and state[2] is not None and observed < state[2]:
            total += Tally(unchanged=1, stale=1)
        elif remove:
            total += Tally(deleted=1 if state else 0)
            state = None
        elif state is None:
            total += Tally(created=1)
            state = (value, kind or "scalar", observed)
        else:
            after = (value, kind or state[1], state[2] if observed is None else observed)
            total += Tally(unchanged=1) if after[:2] == state[:2] else Tally(updated=1)
            state = after
    return state, total
