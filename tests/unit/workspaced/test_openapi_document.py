from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workspaced.app import Application, create_app
from workspaced.http.openapi.document import MissingDescription, Prose, document, read_prose
from workspaced.http.operations import Call, Operation, Read
from workspaced.http.responses import Response
from workspaced.resources.api_sections import api_sections
from workspaced.settings.model import Limits, WorkspacedSettings

METHODS = ("get", "post", "put", "patch", "delete")


@pytest.fixture(scope="module")
def settings() -> WorkspacedSettings:
    return WorkspacedSettings(data=Path("unused"))


@pytest.fixture(scope="module")
def app(settings: WorkspacedSettings) -> Application:
    return create_app(settings)


@pytest.fixture(scope="module")
def made(app: Application) -> dict[str, Any]:
    return app.publication.document


def operations_of(made: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = {}
    for item in made["paths"].values():
        for method in METHODS:
            if method in item:
                found[item[method]["operationId"]] = item[method]
    return found


def test_every_operation_of_the_table_is_described_and_no_other(app: Application, made: dict[str, Any]) -> None:
    assert sorted(operations_of(made)) == sorted(operation.name for operation in app.operations)


async def _without_a_response(_call: Call) -> Response:
    """Get nothing.

    It has a description, but not of its response.
    404: There is none.
    """
    raise NotImplementedError


async def _without_a_description(_call: Call) -> Response:
    """Get nothing."""
    raise NotImplementedError


@pytest.mark.parametrize("handler", [_without_a_response, _without_a_description])
def test_a_handler_without_a_description_is_an_error(handler: Read, settings: WorkspacedSettings) -> None:
    operation = Operation(name="blocks.nothing", method="GET", path="/nothing", scope=None, read=handler)
    with pytest.raises(MissingDescription, match=r"handler of blocks\.nothing does not describe it"):
        document([operation], api_sections(settings.limits), limits=settings.limits, version="1")


def test_the_prose_of_an_operation_is_in_the_docstring_of_its_handler() -> None:
    async def handler(_call: Call) -> Response:
        """Set entries (contract DS11).

        At most $bulk_items items,
        as `{"key": …}`.
        200: The entries,
            in their order.
        404: `entry_not_found`.
        """
        raise NotImplementedError

    prose = read_prose(handler, Limits(bulk_items=3))
    assert prose == Prose(
        summary="Set entries",
        description='At most 3 items, as `{"key": …}`.',
        responses={200: "The entries, in their order.", 404: "`entry_not_found`."},
    )


def test_every_reference_can_be_resolved(made: dict[str, Any]) -> None:
    references = list(_references(made))
    assert len(references) > 100
    for reference in references:
        found: Any = made
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]


def test_every_link_names_an_operation_and_all_parameters_of_its_path(made: dict[str, Any]) -> None:
    operations = operations_of(made)
    links = [
        link
        for operation in operations.values()
        for response in operation["responses"].values()
        for link in response.get("links", {}).values()
    ]
    assert len(links) > 15
    for link in links:
        parameters = [one for one in operations[link["operationId"]]["parameters"] if "in" in one]
        in_path = {one["name"] for one in parameters if one["in"] == "path"}
        assert in_path <= set(link["parameters"]) <= {one["name"] for one in parameters}


def test_limits_are_published_as_configured(settings: WorkspacedSettings) -> None:
    # contract G8
    limits = Limits(key_length=17, bulk_items=3, client_id_length=9, page_length=50)
    made = create_app(dataclasses.replace(settings, limits=limits)).publication.document
    schemas = made["components"]["schemas"]
    assert schemas["NewDataSinkEntry"]["properties"]["key"]["maxLength"] == 17
    assert schemas["MassBulk"]["properties"]["entries"]["maxItems"] == 3
    assert made["components"]["parameters"]["ClientId"]["schema"]["maxLength"] == 9
    take = next(one for one in operations_of(made)["webhooks.list"]["parameters"] if one.get("name") == "take")
    assert take["schema"]["maximum"] == 50


def test_the_four_rows_with_a_documented_400_have_it_beside_the_problem(made: dict[str, Any]) -> None:
    for name, operation in operations_of(made).items():
        response = operation["responses"]["400"]
        shown = "application/json" in response.get("content", {})
        assert shown == (
            name
            in {
                "data_sinks.list_whole",
                "data_sinks.list",
                "data_sinks.update",
                "data_sinks.mass",
                "data_sinks.mass_by_key",
            }
        )


def test_disabled_features_are_not_described(settings: WorkspacedSettings) -> None:
    made = create_app(dataclasses.replace(settings, docs=False)).publication.document
    assert "/docs" not in made["paths"]
    assert "/openapi.json" in made["paths"]


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for one in value.values():
            yield from _references(one)
    if isinstance(value, list):
        for one in value:
            yield from _references(one)
