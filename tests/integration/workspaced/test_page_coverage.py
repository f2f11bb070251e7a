"""Everything that the API has is on a page, and everything that it does can be done on one.

Both are derived from the OpenAPI document of the running service. A member of a record is shown if another value of it, in all
responses of the API to the pages, changes the text of a page.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from html.parser import HTMLParser
from typing import Any, Final

import httpx
import msgspec
import pytest

from tests.integration.workspaced.conftest import MakeKey
from tests.integration.workspaced.test_pages import sign_in, visiting
from tests.support.api_client import api_client
from tests.support.sample_workspace import SampleWorkspace, create_sample_workspace
from workspaced.app import Application
from workspaced.core.json_body import decode, encode
from workspaced.http.internal_client import InternalClient
from workspaced.http.responses import Response

EXAMPLES: Final = {
    "uuid": "0b5ed9e6-6bd1-4f4c-8a4e-2f1c7f5d9a10",
    "date-time": "2001-02-03T04:05:06.007Z",
    "boolean": True,
    "integer": 3,
    "number": 3,
}

METHODS: Final = ("get", "post", "put", "patch", "delete")

NOT_SHOWN: Final = {
    "DataSinkComparison.knownFrom": "the page shows that of the history",
    "DataSinkHistory.dataSinkId": "the page is below its sink",
    "File.workspaceId": "the page is below its workspace, and refuses a file of another workspace",
}
"""Why no page of `pages_of` shows a member of a record."""

WIDER: Final = {"Delivery": "DeliveryWithAttempts", "DataSinkOnly": "DataSink"}
"""Records of lists, and those of the page of one item, which have the same members and more."""

NOT_ON_PAGES: Final = {
    "data_sinks.list_whole": "the pages of the sinks have the same",
    "data_sinks.mass_by_key": "the grid changes one entry",
    "api_keys.get": "the list of the keys has the same",
    "cloud_storage.upload_link": "pages upload a file with one request",
    "cloud_storage.receive": "pages upload a file with one request",
    "cloud_storage.upload_complete": "pages upload a file with one request",
    "cloud_storage.download": "the links to files and to results of conversions",
    "writer_leases.get": "the audit log has the changes of holders",
    "writer_leases.take": "for programs",
    "writer_leases.release": "for programs",
    "writer_leases.ask": "for programs",
    "health.live": "for supervision",
    "health.ready": "for supervision",
    "openapi.document": "for programs",
    "openapi.pages": "it is a page",
}
"""Why no page and no form performs an operation."""

NOT_IN_FORMS: Final = {
    "data_sinks.create.entries": "the page of the new sink imports them",
    "data_sinks.create.origins": "programs say where their values come from",
    **{
        f"data_sinks.create_entry.origin.{part}": "programs say where their values come from"
        for part in ("source", "file", "row", "run", "pipeline", "link")
    },
    "blocks.create.workspace": "the address of the form has it",
    "data_sinks.mass": "the columns of a table are the members",
    "cloud_storage.retry_conversion": "it is sent if a conversion is in progress",
}
"""Why a form does not have a member of the body of its operation, or any of them."""


@pytest.fixture
async def http(app: Application, make_key: MakeKey) -> AsyncIterator[httpx.AsyncClient]:
    """The API for the owner of everything on the pages."""
    async with api_client(app, make_key("anna")) as client:
        yield client


@pytest.fixture
async def browser(app: Application, http: httpx.AsyncClient) -> AsyncIterator[httpx.AsyncClient]:
    async with visiting(app) as client:
        await sign_in(client, http.headers["x-api-key"])
        yield client


@pytest.fixture
async def document(http: httpx.AsyncClient) -> Mapping[str, Any]:
    described: Mapping[str, Any] = (await http.get("/openapi.json")).json()
    return described


@pytest.fixture
async def sample(http: httpx.AsyncClient) -> SampleWorkspace:
    """One resource of each kind, with a history, an icon, and a block below the block."""
    made = await create_sample_workspace(http, tried=True)
    text = {"workspaceId": made.workspace, "fileName": "notes.txt"}
    file = (await http.post("/v1/cloud-storage", params=text, content=b"without a table")).json()["id"]
    base = f"/v1/workspace/{made.workspace}"
    origin = {
        "source": "bench",
        "file": "run.csv",
        "row": 2,
        "run": "r-1",
        "pipeline": "a3",
        "link": "https://d.example/p",
    }
    for request in (
        http.patch(f"{base}/data-sink-history/{made.sink}", json={"changes": 10, "days": 10}),
        http.patch(f"{base}/data-sink/{made.sink}", json={"icon": {"name": "nozzle"}}),
        http.post(f"{base}/data-sink/{made.sink}/mass", json={"key": made.key, "value": "5 kg", "origin": origin}),
        http.post(f"{base}/data-sink/{made.sink}/mass", json=[{"key": f"group.{one}", "value": "1"} for one in "ab"]),
        http.post(f"{base}/blocks", json={"workspace": made.workspace, "parentBlock": made.block}),
    ):
        assert (await request).is_success
    return dataclasses.replace(made, file=file)


async def pages_of(http: httpx.AsyncClient, sample: SampleWorkspace) -> list[str]:
    """Return the URLs of the pages that show records."""
    kept = (await http.get(f"/v1/workspace/{sample.workspace}/data-sink-history/{sample.sink}")).json()
    workspace, webhook = f"/ui/workspaces/{sample.workspace}", f"/ui/webhooks/{sample.webhook}"
    sink = f"{workspace}/sinks/{sample.sink}"
    return [
        "/ui/workspaces",
        workspace,
        sink,
        f"{sink}/entries/{sample.key}",
        f"{sink}/groups",
        f"{sink}/history",
        f"{sink}/history?from={kept['knownFrom'].rstrip('Z')}",
        f"{sink}/entries/{sample.key}/history",
        f"{workspace}/blocks",
        f"{workspace}/blocks/{sample.block}",
        f"{workspace}/files",
        f"{workspace}/files/{sample.file}",
        "/ui/webhooks",
        webhook,
        f"{webhook}/deliveries/{sample.delivery}",
        "/ui/webhooks/event-types",
        "/ui/keys",
        "/ui/audit",
    ]


def forms_of(sample: SampleWorkspace, key: str) -> dict[str, tuple[str, str]]:
    """Return for each operation that changes something a page, and the action of the form on it."""
    workspace, webhook = f"/ui/workspaces/{sample.workspace}", f"/ui/webhooks/{sample.webhook}"
    sink, block, file = (
        f"{workspace}/sinks/{sample.sink}",
        f"{workspace}/blocks/{sample.block}",
        f"{workspace}/files/{sample.file}",
    )
    entry, delivery = f"{sink}/entries/{sample.key}", f"{webhook}/deliveries/{sample.delivery}"

    def own(page: str) -> tuple[str, str]:
        return page, page

    return {
        "workspaces.create": own("/ui/workspaces/new"),
        "workspaces.update": own(f"{workspace}/edit"),
        "workspaces.delete": own(f"{workspace}/delete"),
        "data_sinks.create": own(f"{workspace}/new-sink"),
        "data_sinks.update": own(f"{sink}/edit"),
        "data_sinks.delete": own(f"{sink}/delete"),
        "data_sinks.create_entry": own(f"{sink}/new-entry"),
        "data_sinks.update_entry": own(f"{entry}/edit"),
        "data_sinks.delete_entry": own(f"{entry}/delete"),
        "data_sinks.mass": own(f"{sink}/import"),
        "data_sink_history.update": own(f"{workspace}/sinks/SNK-1/history"),
        "blocks.create": own(f"{workspace}/blocks/new"),
        "blocks.update": own(f"{block}/edit"),
        "blocks.delete": own(f"{block}/delete"),
        "api_keys.create": own("/ui/keys"),
        "api_keys.rotate": ("/ui/keys", f"/ui/keys/{key}/rotate"),
        "api_keys.revoke": ("/ui/keys", f"/ui/keys/{key}/revoke"),
        "webhooks.create": own("/ui/webhooks/new"),
        "webhooks.update": own(f"{webhook}/edit"),
        "webhooks.delete": own(f"{webhook}/delete"),
        "webhooks.rotate_secret": (webhook, f"{webhook}/rotate-secret"),
        "webhooks.test": (webhook, f"{webhook}/test"),
        "webhooks.redeliver": (delivery, f"{delivery}/redeliver"),
        "cloud_storage.upload": (f"{workspace}/files", f"{workspace}/files/upload"),
        "cloud_storage.update": own(f"{file}/edit"),
        "cloud_storage.delete": own(f"{file}/delete"),
        "cloud_storage.replace_metadata": own(f"{file}/metadata"),
        "cloud_storage.retry_conversion": (file, f"{file}/retry"),
    }


class PageText(HTMLParser):
    """The text of a page with that of its fields, and the names of the fields of each form by its URL.

    ``url``: of the page, to which a form without an action is sent.
    """

    def __init__(self, page: str, url: str) -> None:
        super().__init__()
        self._url = url
        self.texts: list[str] = []
        self.forms: dict[str, set[str]] = {}
        self._form: set[str] = set()
        self.feed(page.partition("<main")[2])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        target = given.get("action", self._url) if tag == "form" else given.get("data-to")
        if target:
            self._form = self.forms.setdefault(target.partition("?")[0], set())
        if tag in {"input", "select", "textarea"} and given.get("type") != "hidden":
            self._form.add(given.get("name") or "")
            self.texts.append(given.get("value") or "")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


class ApiRewriter:
    """Replaces the responses of the API to pages: ``member`` of all records named ``record`` has another value.

    A list without a record gets one, so that its members are on the page. ``operations`` and ``records`` are the names of what
    pages asked for.
    """

    def __init__(self, document: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        self.schemas: Mapping[str, Any] = document["components"]["schemas"]
        self.record, self.member = "", ""
        self.operations: set[str] = set()
        self.records: set[str] = set()
        self._routes = [
            (method, re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), path.count("{"), described)
            for path, methods in document["paths"].items()
            for method, described in methods.items()
            if method in METHODS
        ]
        request = InternalClient.request

        async def rewritten(client: InternalClient, method: str, *segments: str, **more: Any) -> Response:
            return await self._rewritten(method, segments, await request(client, method, *segments, **more))

        monkeypatch.setattr(InternalClient, "request", rewritten)

    async def _rewritten(self, method: str, segments: tuple[str, ...], response: Response) -> Response:
        path = "/v1/" + "/".join(segments)
        fitting = [one for one in self._routes if one[0] == method.lower() and one[1].fullmatch(path)]
        *_, described = min(fitting, key=lambda one: one[2])
        self.operations.add(described["operationId"])
        content = described["responses"].get(str(response.status), {}).get("content", {}).get("application/json")
        if content is None or response.status >= 400:
            return response
        body = response.body
        if response.parts is not None:
            body = b"".join([part async for part in response.parts])
        changed = encode(self._walked(content["schema"], decode(body)))
        return msgspec.structs.replace(response, body=changed, parts=None)

    def _walked(self, schema: Mapping[str, Any], value: Any) -> Any:
        schema = self._resolved(schema, value)
        if isinstance(value, list):
            items = value or ([self._example(schema["items"])] if "$ref" in schema["items"] else [])
            return [self._walked(schema["items"], item) for item in items]
        name = schema.get("$ref", "").rpartition("/")[2]
        if not name or not isinstance(value, dict):
            return value
        self.records.add(name)
        members = self.schemas[name].get("properties", {})
        walked = {member: self._walked(members[member], inner) for member, inner in value.items() if member in members}
        if name == self.record:
            walked[self.member] = self._other(members[self.member], walked.get(self.member))
        return walked

    def _resolved(self, schema: Mapping[str, Any], value: Any) -> Mapping[str, Any]:
        """Return the alternative of a schema that fits the value."""
        kinds: dict[str, type] = {"null": type(None), "object": dict, "array": list, "boolean": bool, "string": str}
        for one in schema.get("anyOf", ()):
            kind = self.schemas[one["$ref"].rpartition("/")[2]].get("type") if "$ref" in one else one.get("type")
            if isinstance(value, kinds.get(str(kind), object)):
                found: Mapping[str, Any] = one
                return found
        return schema

    def _example(self, schema: Mapping[str, Any]) -> Any:
        """Return a value of a schema."""
        options = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
        if options:
            return self._example(options[0])
        if "$ref" in schema:
            described = self.schemas[schema["$ref"].rpartition("/")[2]]
            return {name: self._example(member) for name, member in described["properties"].items()}
        if schema.get("type") == "array":
            return [self._example(schema["items"])]
        if schema.get("type") == "object":
            return {"one": self._example(schema.get("additionalProperties") or {})}
        named = schema.get("format", schema.get("type"))
        return schema["enum"][0] if "enum" in schema else EXAMPLES.get(named, "text")

    def _other(self, schema: Mapping[str, Any], value: Any) -> Any:
        """Return another value of a schema than ``value``."""
        schema = self._resolved(schema, value) if value is not None else schema
        match value:
            case bool():
                return not value
            case list():
                return [*value, *self._example({**schema, "type": "array"})]
            case dict() if "$ref" not in schema:
                return {**value, **self._example({**schema, "type": "object"})}
            case str() if "enum" in schema:
                return next(one for one in schema["enum"] if one != value)
            case str() if "format" not in schema:
                return f"another {value}"
        is_number = value is not None and schema.get("type") in {"integer", "number"}
        return value + 1 if is_number else self._example(schema)


async def test_every_member_of_every_record_is_on_a_page(
    browser: httpx.AsyncClient,
    http: httpx.AsyncClient,
    sample: SampleWorkspace,
    document: Mapping[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = ApiRewriter(document, monkeypatch)

    async def shown(page: str) -> list[str] | None:
        response = await browser.get(page)
        return PageText(response.text, response.url.path).texts if response.status_code == 200 else None

    before: dict[str, list[str] | None] = {}
    records: dict[str, frozenset[str]] = {}
    for page in await pages_of(http, sample):
        api.records.clear()
        before[page] = await shown(page)
        assert before[page] is not None, page
        records[page] = frozenset(api.records)

    async def is_on(page: str, record: str, member: str) -> bool:
        while True:
            api.record, api.member = record, member
            other = await shown(page)
            api.record = ""
            same = await shown(page)
            # Else something else of the page changed, such as the time of the last use of a key.
            if same == before[page]:
                return other is not None and other != same
            before[page] = same

    missing = set()
    for record in sorted(frozenset[str]().union(*records.values())):
        pages = [page for page, names in records.items() if record in names]
        for member in api.schemas[record]["properties"]:
            if not any([await is_on(page, record, member) for page in pages]):
                missing.add(f"{record}.{member}")
    for record, wider in WIDER.items():
        members = api.schemas[record]["properties"]
        assert members.keys() <= api.schemas[wider]["properties"].keys()
        missing -= {f"{record}.{member}" for member in members if f"{wider}.{member}" not in missing}
    missing ^= NOT_SHOWN.keys()
    assert not missing, f"on no page, or wrongly in NOT_SHOWN: {sorted(missing)}"


async def test_every_operation_is_on_a_page_or_in_a_form_with_the_members_of_its_body(
    browser: httpx.AsyncClient,
    http: httpx.AsyncClient,
    sample: SampleWorkspace,
    document: Mapping[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = ApiRewriter(document, monkeypatch)
    for page in await pages_of(http, sample):
        await browser.get(page)
    key = (await http.post("/v1/api-keys", json={"name": "bob", "role": "reader"})).json()["id"]
    forms = forms_of(sample, key)
    operations = {
        one["operationId"]: one
        for methods in document["paths"].values()
        for method, one in methods.items()
        if method in METHODS
    }
    missing = (set(operations) - api.operations - set(forms)) ^ NOT_ON_PAGES.keys()
    assert not missing, f"on no page, or wrongly in NOT_ON_PAGES: {sorted(missing)}"
    missing = set()
    for name, (page, action) in forms.items():
        found = PageText((await browser.get(page)).text, page).forms
        assert action in found, f"{page} has no form for {name}"
        content = operations[name].get("requestBody", {}).get("content", {}).get("application/json")
        if content is not None:
            members = set(_members(api.schemas, content["schema"]))
            absent = {one for one in members if not {one, one.partition(".")[0]} & found[action]}
            missing |= {name} if absent and absent == members else {f"{name}.{one}" for one in absent}
    missing ^= NOT_IN_FORMS.keys()
    assert not missing, f"in no form, or wrongly in NOT_IN_FORMS: {sorted(missing)}"


def _members(schemas: Mapping[str, Any], schema: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the names of the members of a body; those of an object in it have a dot, as the fields of forms."""
    for name, member in _properties(schemas, schema):
        yield from list(_members(schemas, member, f"{prefix}{name}.")) or [f"{prefix}{name}"]


def _properties(schemas: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if "$ref" in schema:
        yield from _properties(schemas, schemas[schema["$ref"].rpartition("/")[2]])
    for option in schema.get("anyOf", ()):
        yield from _properties(schemas, option)
    yield from schema.get("properties", {}).items()
