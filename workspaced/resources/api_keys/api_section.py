"""The API keys' section of the API description; `workspaced.resources.api_keys.rules` is what validates."""

from __future__ import annotations

from typing import Final

from workspaced.http.openapi.description import ApiSection, Body, Link, OperationDescription, Parameter, Success
from workspaced.http.openapi.schema import (
    FLAG,
    NAME,
    NAMES,
    NOT_BLANK,
    STAMP,
    UUID,
    Schema,
    choice,
    given,
    listed,
    nullable,
    record,
    ref,
    text,
    texts,
    told,
)
from workspaced.http.openapi.shared import LISTED, paging
from workspaced.resources.api_keys.routes import SORTABLE
from workspaced.resources.api_keys.rules import LONGEST_GRACE_SECONDS
from workspaced.security.permissions import ROLES
from workspaced.settings.model import Limits

_KEY: Final = Parameter(
    name="id",
    description="The key's id, which is its second part: `edw_<id>_…`.",
    schema=text(pattern="^[0-9A-Za-z]{8}$"),
)
_ONE: Final = {"id": "$response.body#/id"}
_ABOUT: Final = """\
Keys belong to principals, whose name records carry. What a key may do is its scopes and its principal's grants, together.
The first key is made by `workspaced keys create`.
"""
_NO_KEY: Final = "`key_not_found`: there is none."


def api_section(limits: Limits) -> ApiSection:
    """List, get, create, rotate, revoke."""
    return ApiSection(
        title="API keys",
        description=_ABOUT,
        operations=_operations(limits),
        path={"key": _KEY},
        schemas=_schemas(limits),
    )


def _schemas(limits: Limits) -> dict[str, Schema]:
    key = {
        "id": NAME,
        "name": NAME,
        "principal": NAME,
        "lastFour": NAME,
        "scopes": NAMES,
        "grants": listed(record({"workspaceId": nullable(told(UUID, "null: all.")), "role": NAME})),
        "guest": FLAG,
        "createdAt": STAMP,
        "expiresAt": nullable(told(STAMP, "null: never.")),
        "lastUsedAt": nullable(STAMP),
        "revokedAt": nullable(STAMP),
    }
    shown = {**key, "key": told(NAME, "The key itself; nobody will see it again. Not in a repeated answer.")}
    seconds: Schema = {"type": "integer", "minimum": 0, "maximum": LONGEST_GRACE_SECONDS}
    new = given(
        {
            "name": text(shortest=1, longest=limits.label_length, pattern=NOT_BLANK, about="Of the principal."),
            "role": choice(*ROLES),
            "workspaceId": told(UUID, "The one workspace it is for; all unless given."),
            "scopes": texts(most=100, longest=100, about="Some of the role's; all of them unless given."),
            "expiresAt": {
                "anyOf": [STAMP, {"const": "never"}],
                "description": f"In the future; in {limits.key_days} days unless given.",
            },
            "guest": told(FLAG, "Whether it works only where a workspace lets guests in."),
        },
        required={"name", "role"},
    )
    new["anyOf"] = [_fitting(role, sorted(scopes)) for role, scopes in ROLES.items()]
    return {
        "ApiKey": record(key),
        "ShownApiKey": record(shown, optional={"key"}),
        "NewApiKey": new,
        "KeyRotation": given({"gracePeriodSeconds": told(seconds, "How long the old key holds; a day unless given.")}),
    }


def _fitting(role: str, scopes: list[str]) -> Schema:
    """A role and the scopes that a key of it can have."""
    one = choice(*scopes)
    return {"properties": {"role": {"const": role}, "scopes": nullable({"anyOf": [listed(one), one]})}}


def _operations(limits: Limits) -> tuple[OperationDescription, ...]:
    key = ref("ApiKey")
    links = {
        "get": Link(operation="api_keys.get", parameters=_ONE),
        "rotate": Link(operation="api_keys.rotate", parameters=_ONE),
        "revoke": Link(operation="api_keys.revoke", parameters=_ONE),
    }
    return (
        OperationDescription(
            name="api_keys.list",
            summary="List API keys",
            description="Every key, the oldest first, revoked ones too; never the key itself.",
            query=paging(limits, SORTABLE),
            success=(Success(description="The keys.", schema=listed(key), headers=LISTED),),
        ),
        OperationDescription(
            name="api_keys.create",
            summary="Create an API key",
            description="The one answer that shows the key.",
            body=Body(schema=ref("NewApiKey"), example={"name": "svc:ingest", "role": "pusher"}),
            success=(
                Success(
                    status=201,
                    description="The key.",
                    schema=ref("ShownApiKey"),
                    headers=("Location", "Cache"),
                    links=links,
                ),
            ),
            refusals={422: "`workspace_not_found`: there is no such workspace."},
        ),
        OperationDescription(
            name="api_keys.get",
            summary="Get an API key",
            description="One key, revoked or not; never the key itself.",
            success=(Success(description="The key.", schema=key),),
            refusals={404: _NO_KEY},
        ),
        OperationDescription(
            name="api_keys.rotate",
            summary="Rotate an API key",
            description="A new secret under the same id.",
            body=Body(schema=ref("KeyRotation"), example={"gracePeriodSeconds": 3600}, required=False),
            success=(Success(description="The key.", schema=ref("ShownApiKey"), headers=("Cache",)),),
            refusals={404: _NO_KEY, 409: "`key_revoked`: it is revoked; create another one."},
        ),
        OperationDescription(
            name="api_keys.revoke",
            summary="Revoke an API key",
            description="The key and every secret of it end.",
            success=(Success(description="The key as it is now.", schema=key),),
            refusals={404: f"{_NO_KEY} `key_revoked`: it is revoked already."},
        ),
    )
