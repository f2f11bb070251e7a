from __future__ import annotations

import random

import pytest

from workspaced.security.key_format import digest, key_id_of, new_key, new_key_id
from workspaced.security.permissions import DATA_SINKS_PUSH, DATA_SINKS_WRITE, ROLES, WorkspaceGrant, principal_of

A, B = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"


def test_a_key_contains_its_id_and_any_single_error_is_detected() -> None:
    # contract A1
    dice = random.Random(1)
    key_id = new_key_id(dice.choice)
    key = new_key(key_id, dice.choice)
    assert len(key) == 62
    assert key_id_of(key) == key_id
    assert len(digest(key)) == 32
    for place in range(len(key)):
        slip = key[:place] + ("x" if key[place] != "x" else "y") + key[place + 1 :]
        assert key_id_of(slip) is None
    for text in ("", key[:-1], key + "a", key.upper(), "edw_", key.replace("edw", "EDW")):
        assert key_id_of(text) is None


def test_a_permission_requires_both_the_key_and_a_grant() -> None:
    # contract A5
    principal = principal_of(
        name="x",
        key_id="k",
        key_scopes=ROLES["editor"],
        grants=(WorkspaceGrant(workspace_id=A, role="owner"), WorkspaceGrant(workspace_id=B, role="reader")),
    )
    assert principal.may(DATA_SINKS_WRITE, A)
    assert not principal.may("workspaces:delete", A)
    assert principal.may("data_sinks:read", B)
    assert not principal.may(DATA_SINKS_PUSH, B)
    assert not principal.may("data_sinks:read")
    assert principal.may_somewhere(DATA_SINKS_WRITE)
    assert not principal.may_somewhere("admin")


def test_write_includes_push() -> None:
    # contract A5
    grants = (WorkspaceGrant(workspace_id="", role="owner"),)
    principal = principal_of(name="x", key_id="k", key_scopes=frozenset({DATA_SINKS_WRITE}), grants=grants)
    assert principal.may(DATA_SINKS_PUSH, A)
    assert not principal.may("data_sinks:read", A)


@pytest.mark.parametrize(("less", "more"), [("reader", "editor"), ("pusher", "editor"), ("editor", "owner")])
def test_a_higher_role_includes_the_lower_ones(less: str, more: str) -> None:
    assert ROLES[less] < ROLES[more]


def test_an_unknown_role_in_the_database_permits_nothing() -> None:
    principal = principal_of(
        name="x", key_id="k", key_scopes=ROLES["owner"], grants=(WorkspaceGrant(workspace_id="", role="emperor"),)
    )
    assert not principal.may("workspaces:read")
