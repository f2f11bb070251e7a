from __future__ import annotations

from typing import get_args

import pytest

from ingestd.core.outcome import Remedy
from ingestd.core.plan import EntryKind, Step, Then, after, first_step, needs_retype


@pytest.mark.parametrize(
    ("kind", "null", "step"),
    [
        ("create", False, "create_entry"),
        ("create", True, "create_entry"),
        ("update", False, "mass_update_entry"),
        ("update", True, "patch_entry"),
        ("delete", False, "delete_entry"),
    ],
)
def test_each_kind_begins_with_its_own_operation(kind: EntryKind, null: bool, step: Step) -> None:
    assert first_step(kind, value_is_null=null) == step


@pytest.mark.parametrize(
    ("step", "remedy", "then"),
    [
        ("create_entry", "none", "done"),
        ("create_entry", "conflict", "mass_update_entry"),
        ("create_entry", "missing", "sink?"),
        ("mass_update_entry", "missing", "create_entry"),
        ("patch_entry", "missing", "create_entry"),
        ("delete_entry", "missing", "done"),
        ("create_entry", "park", "park"),
        ("mass_update_entry", "shrink", "park"),
        ("delete_entry", "retry", "stop"),
        ("create_entry", "pause", "stop"),
        ("mass_update_entry", "conflict", "stop"),
    ],
)
def test_a_step_is_followed_by_what_the_answer_calls_for(step: Step, remedy: Remedy, then: Then) -> None:
    assert after(step, remedy, value_is_null=False) == then


def test_every_step_and_remedy_has_a_following() -> None:
    for step in get_args(Step):
        for remedy in get_args(Remedy):
            assert after(step, remedy, value_is_null=False) in (*get_args(Step), "done", "park", "stop", "sink?")


def test_a_null_is_never_mass_updated_for_the_document_wants_a_text_there() -> None:
    assert after("create_entry", "conflict", value_is_null=True) == "patch_entry"


def test_a_type_is_put_right_only_where_the_service_names_another() -> None:
    assert needs_retype(wanted="text", answered="scalar")
    assert not needs_retype(wanted="text", answered="text")
    assert not needs_retype(wanted="text", answered=None)
    assert not needs_retype(wanted=None, answered="scalar")


def test_an_update_is_a_patch_where_that_is_configured() -> None:
    assert first_step("update", value_is_null=False, update_with="patch") == "patch_entry"
    assert after("create_entry", "conflict", value_is_null=False, update_with="patch") == "patch_entry"
    assert first_step("create", value_is_null=False, update_with="patch") == "create_entry"
