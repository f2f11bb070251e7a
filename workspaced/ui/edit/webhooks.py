"""Create, change and delete a webhook, and replace its signing secret.

The form has the headers of a webhook only if the key may see their values. Otherwise the save would store the masked values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from workspaced.http.responses import Response
from workspaced.ui.addresses import address, see_other
from workspaced.ui.edit.form import (
    NEW_ID,
    SHOWN,
    FormField,
    FormPage,
    Link,
    read_given,
    save,
    schema_fields,
    texts_of,
)
from workspaced.ui.page_request import PageRequest
from workspaced.ui.renderer import PageView, shown_digest
from workspaced.ui.webhooks import SECTION, is_owner

_ALL: Final[Link] = (address("webhooks"), "Webhooks")
_CONNECTION: Final = "oauthConnection"
_OWNED: Final = ("headers", "signingSecret")
_SHOWN: Final = ("url", "label", "dataEvents")
_FOLDED: Final = (
    "enabled",
    "workspaceIds",
    "ignoreClientIds",
    "coalesce",
    "inOrder",
    "batchEntries",
    *_OWNED,
    _CONNECTION,
)


async def _fields(request: PageRequest, *, shown: Sequence[str] = _SHOWN, owned: bool) -> list[FormField]:
    """Return the fields of the form, without a webhook's values. All fields except ``shown`` are folded.

    ``owned``: also return fields that only the owner of a webhook may see.
    """
    kinds = ", ".join(kind["type"] for kind in (await request.get("webhooks", "event-types")).value)
    workspaces = (await request.get("workspace", take="1000", sortedBy="label")).value
    fields = schema_fields(
        request.schema_of("NewWebhook"),
        [*shown, *(name for name in _FOLDED if name not in shown and (owned or name not in _OWNED))],
        without=_OWNED,
        url={"label": "URL"},
        enabled={"value": "true"},
        dataEvents={"value": "*", "hint": f"One on each line: *, a prefix such as data_sink.*, or one of {kinds}."},
        workspaceIds={
            "label": "Workspaces",
            "kind": "several",
            "options": [(one["id"], one["label"]) for one in workspaces],
            "hint": "None selected: all workspaces that the owner of the webhook may read.",
        },
    )
    return [dataclasses.replace(one, rare=one.name not in shown) for one in fields]


def _wanted(form: Mapping[str, str], fields: Sequence[FormField]) -> dict[str, Any]:
    """Return the members of the form without empty texts. Without a member, the present value or the default applies."""
    wanted = read_given({one.name: form.get(one.name, "").strip() for one in fields}, fields)
    wanted[_CONNECTION] = {part: text for part, text in wanted[_CONNECTION].items() if text}
    return wanted


def _values_of(record: Mapping[str, Any], fields: Sequence[FormField]) -> Mapping[str, Any]:
    """Return the members of a record that the form has. The secret is empty, so that a typed secret counts as a change."""
    names = dict.fromkeys(one.name.partition(".")[0] for one in fields)
    return {name: "" if name == "signingSecret" else record[name] for name in names}


def _filled(fields: Sequence[FormField], record: Mapping[str, Any]) -> list[FormField]:
    """Return the fields with the values of a record. Fields for secrets stay empty."""
    filled = []
    texts = texts_of(record)
    for one in fields:
        value = "" if one.kind == "secret" else texts.get(one.name, "")
        known = {option for option, _ in one.options}
        # A selected workspace that is deleted, or that the key may not read, stays selected.
        others = [(line, line) for line in value.split("\n") if line and line not in known] if one.options else []
        filled.append(dataclasses.replace(one, value=value, options=[*one.options, *others]))
    return filled


async def create_webhook(request: PageRequest) -> PageView | Response:
    """GET: show the form of a new webhook. POST: create the webhook."""
    fields = [*await _fields(request, owned=True), NEW_ID]
    page = FormPage(
        title="New webhook",
        section=SECTION,
        trail=[_ALL],
        submit="Create webhook",
        fields=fields,
    )
    return await page.respond(
        request,
        lambda: request.send("POST", "webhooks", body=_wanted(request.form, fields)),
        to=lambda made: address("webhooks", made.headers["location"].rpartition("/")[2]),
    )


async def edit_webhook(request: PageRequest) -> PageView | Response:
    """GET: show the form of a webhook. POST: change the webhook."""
    record = (await request.get("webhooks", request.names["webhook"])).record
    owned = is_owner(request, record)
    fields = await _fields(request, shown=[*_SHOWN, "enabled"], owned=owned)
    page = FormPage(
        title="Edit webhook",
        section=SECTION,
        trail=[_ALL, (address("webhooks", record["id"]), record["label"])],
        fields=_filled(fields, record),
        sentences=() if owned else ["Only the owner of the webhook can change its headers and its secret."],
        hidden={SHOWN: shown_digest(_values_of(record, fields))},
    )
    return await page.respond(
        request,
        lambda: save(
            request,
            ("webhooks", record["id"]),
            _wanted(request.form, fields),
            values_of=lambda present: _values_of(present, fields),
        ),
    )


async def delete_webhook(request: PageRequest) -> PageView | Response:
    """GET: ask whether to delete a webhook. POST: delete the webhook."""
    record = (await request.get("webhooks", request.names["webhook"])).record
    page = FormPage(
        title="Delete webhook",
        section=SECTION,
        trail=[_ALL, (address("webhooks", record["id"]), record["label"])],
        sentences=[f"The webhook “{record['label']}” and its pending deliveries are deleted. This can't be undone."],
        is_dangerous=True,
    )
    return await page.respond(
        request, lambda: request.send("DELETE", "webhooks", record["id"]), to=lambda _: address("webhooks")
    )


async def rotate_secret(request: PageRequest) -> Response:
    """Replace the signing secret, then show the webhook."""
    grace = request.form.get("gracePeriodSeconds", "")
    body = {"gracePeriodSeconds": int(grace)} if grace.isascii() and grace.isdigit() and len(grace) < 10 else {}
    await request.send("POST", "webhooks", request.names["webhook"], "rotate-secret", body=body)
    return see_other(address("webhooks", request.names["webhook"]))
