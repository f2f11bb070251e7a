"""The section of the API description for API keys."""

from __future__ import annotations

from typing import Final

from workspaced.core.json_schema import record_schemas, ref, string
from workspaced.core.members import body_schemas
from workspaced.http.openapi.description import (
    ApiSection,
    Body,
    OperationDescription,
    Parameter,
    Success,
    links,
    listed,
)
from workspaced.http.openapi.shared import paging
from workspaced.resources.api_keys.records import ApiKeyRecord, ShownApiKeyRecord
from workspaced.resources.api_keys.routes import SORTABLE
from workspaced.resources.api_keys.rules import KeyRotation, new_key_schema
from workspaced.settings.model import Limits

_KEY: Final = Parameter(
    "id", "The key's id, which is its second part: `edw_<id>_…`.", string(pattern="^[0-9A-Za-z]{8}$")
)
_ABOUT: Final = """\
A key belongs to a principal. Its scopes and the grants of the principal together decide what it permits. Records have the
name of the principal. The first key is created by `workspaced keys create`.
"""
_NO_KEY: Final = "`key_not_found`: there is none."


def api_section(limits: Limits) -> ApiSection:
    """Return the section: list, get, create, rotate, revoke."""
    key = ref("ApiKey")
    following = links(
        {"id": "$response.body#/id"}, get="api_keys.get", rotate="api_keys.rotate", revoke="api_keys.revoke"
    )
    return ApiSection(
        title="API keys",
        description=_ABOUT,
        path={"key": _KEY},
        schemas={
            **record_schemas(ApiKeyRecord, ShownApiKeyRecord),
            **body_schemas(limits, KeyRotation),
            "NewApiKey": new_key_schema(limits),
        },
        operations=(
            OperationDescription(
                "api_keys.list",
                "List API keys",
                "Every key, the oldest first, revoked ones too; never the key itself.",
                listed("The keys.", "ApiKey"),
                query=paging(limits, SORTABLE),
            ),
            OperationDescription(
                "api_keys.create",
                "Create an API key",
                "The only response that shows the key.",
                Success("The key.", ref("ShownApiKey"), status=201, headers=("Location", "Cache"), links=following),
                body=Body(ref("NewApiKey"), {"name": "svc:ingest", "role": "pusher"}),
                refusals={422: "`workspace_not_found`: there is no such workspace."},
            ),
            OperationDescription(
                "api_keys.get",
                "Get an API key",
                "One key, revoked or not; never the key itself.",
                Success("The key.", key),
                refusals={404: _NO_KEY},
            ),
            OperationDescription(
                "api_keys.rotate",
                "Rotate an API key",
                "A new secret under the same id.",
                Success("The key.", ref("ShownApiKey"), headers=("Cache",)),
                body=Body(ref("KeyRotation"), {"gracePeriodSeconds": 3600}, required=False),
                refusals={404: _NO_KEY, 409: "`key_revoked`: it is revoked; create another one."},
            ),
            OperationDescription(
                "api_keys.revoke",
                "Revoke an API key",
                "The key and all its secrets become invalid.",
                Success("The key after it was revoked.", key),
                refusals={404: f"{_NO_KEY} `key_revoked`: it was revoked before."},
            ),
        ),
    )
