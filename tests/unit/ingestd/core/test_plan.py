from __future__ import annotations

from typing import get_args

import pytest

from ingestd.core.outcome import Remedy
from ingestd.core.plan import EntryKind, NextStep, Step, first_step, needs_retype, next_step


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
    ("step", "remedy", "following"),
    [
        ("create_entry", "none", "done"),
        ("create_entry", "conflict", "mass_update_entry"),
        ("create_entry", "missing", "check_sink"),
        ("mass_update_entry", "missing", "create_entry"),
        ("patch_entry", "missing", "create_entry"),
        ("delete_entry", "missing", "done"),
        ("create_entry", "reject", "reject"),
        ("mass_update_entry", "shrink", "reject"),
        ("delete_entry", "retry", "stop"),
        ("create_entry", "pause", "stop"),
        ("mass_update_entry", "conflict", "stop"),
    ],
)
def test_the_remedy_of_a_step_determines_the_next_one(step: Step, remedy: Remedy, following: NextStep) -> None:
    assert next_step(step, remedy, value_is_null=False) == following


def test_every_step_and_remedy_has_a_next_step() -> None:
    for step in get_args(Step):
        for remedy in get_args(Remedy):
            assert next_step(step, remedy, value_is_null=False) in (
                *get_args(Step),
                "done",
                "reject",
                "stop",
                "check_sink",
            )


def test_a_null_is_never_mass_updated_because_the_document_requires_text() -> None:
    assert next_step("create_entry", "conflict", value_is_null=True) == "patch_entry"


def test_a_type_is_corrected_only_if_the_service_returns_another() -> None:
    assert needs_retype(wanted="text", found="scalar")
    assert not needs_retype(wanted="text", found="text")
    assert not needs_retype(wanted="text", found=None)
    assert not needs_retype(wanted=None, found="scalar")


@pytest.mark.parametrize(
    ("step", "found", "following"),
    [
        ("mass_update_entry", "scalar", "patch_entry"),
        ("mass_update_entry", "text", "done"),
        ("mass_update_entry", None, "done"),
        ("create_entry", "scalar", "done"),
        ("patch_entry", "scalar", "done"),
    ],
)
def test_only_a_mass_update_that_left_another_type_is_followed_by_a_patch(
    step: Step, found: str | None, following: NextStep
) -> None:
    assert next_step(step, "none", value_is_null=False, wanted="text", found=found) == following


def test_an_update_is_a_patch_if_configured() -> None:
    assert first_step("update", value_is_null=False, update_with="patch") == "patch_entry"
    assert next_step("create_entry", "conflict", value_is_null=False, update_with="patch") == "patch_entry"
    assert first_step("create", value_is_null=False, update_with="patch") == "create_entry"
