from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workspaced.app import Application, create_app
from workspaced.http.openapi.document import MissingDescription, document
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


def test_an_operation_without_a_description_is_an_error(app: Application, settings: WorkspacedSettings) -> None:
    more = (*app.operations, dataclasses.replace(app.operations[0], name="blocks.rename"))
    with pytest.raises(MissingDescription, match=r"Without a description: \['blocks.rename'\]"):
        document(more, api_sections(settings), limits=settings.limits, version="1")


def test_a_description_without_an_operation_is_an_error(app: Application, settings: WorkspacedSettings) -> None:
    fewer = [operation for operation in app.operations if operation.name != "blocks.get"]
    with pytest.raises(MissingDescription, match=r"in no table: \['blocks.get'\]"):
        document(fewer, api_sections(settings), limits=settings.limits, version="1")


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
