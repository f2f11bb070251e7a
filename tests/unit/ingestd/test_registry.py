from __future__ import annotations

import pytest

from ingestd.registry import connector_class, connector_names
from ingestd.sdk.formats.installed import FORMATS
from ingestd.sdk.plugins import CONNECTORS, PluginGroup, PluginUnusable
from ingestd.settings.validation import ConnectorUnusable
from tests.support.plugins import Installer

WORKS = """\
from pydantic import BaseModel
from ingestd.sdk import Connector

class Works(Connector):
    class Options(BaseModel):
        depth: int = 1
    def partitions(self):
        return ()
    def read(self, partition, cursor):
        yield from ()

class NoOptions(Connector):
    pass

NOT_A_CLASS = 7

class OfAnotherContract(Works):
    contract = 2
"""


def refusal(name: str) -> str:
    with pytest.raises(ConnectorUnusable) as caught:
        connector_class(name)
    return str(caught.value)


def test_an_installed_connector_is_found_by_its_name(installer: Installer) -> None:
    installer.install("acme-plm", "registry_works", WORKS, plm="Works")
    assert connector_class("plm").__name__ == "Works"
    assert "plm" in connector_names()


def test_an_unknown_name_is_rejected_with_the_nearest_one(installer: Installer) -> None:
    installer.install("acme-plm", "registry_works", WORKS, teamcentre="Works")
    assert refusal("teamcenter") == "There is no connector 'teamcenter'. Did you mean 'teamcentre'?"
    assert refusal("zzzzzz").startswith("There is no connector 'zzzzzz'. Installed are: ")


@pytest.mark.parametrize(
    ("group", "word", "name"),
    [
        (CONNECTORS, "folder", "directory"),
        (CONNECTORS, "Postgres", "database"),
        (CONNECTORS, "opc-ua", "opcua"),
        (FORMATS, "xlsx", "excel"),
        (FORMATS, "yml", "yaml"),
        (FORMATS, "JSON-Lines", "ndjson"),
    ],
)
def test_another_word_for_a_connector_or_format_has_an_error_with_its_name(
    group: PluginGroup, word: str, name: str
) -> None:
    with pytest.raises(PluginUnusable, match=f"There is no {group.noun} '{word}'. Did you mean '{name}'\\?$"):
        group.load(word)


@pytest.mark.parametrize("group", [CONNECTORS, FORMATS], ids=lambda group: group.noun)
def test_the_other_words_are_of_installed_plug_ins_and_no_names(group: PluginGroup) -> None:
    words = [word for text in group.also_called.values() for word in text.split()]
    assert set(group.also_called) <= set(group.names())
    assert len(words) == len(set(words))
    assert group.noun == "connector" or not set(words) & set(group.names())


def test_a_connector_that_cannot_be_imported_is_reported_and_does_not_affect_others(installer: Installer) -> None:
    installer.install("acme-broken", "registry_broken", "import no_such_module_at_all\n", broken="Broken")
    installer.install("acme-worse", "registry_worse", "raise RuntimeError('no licence')\n", worse="Worse")
    installer.install("acme-plm", "registry_works", WORKS, plm="Works")
    assert refusal("broken") == (
        "The connector 'broken' of acme-broken 1.2 can't be loaded: ModuleNotFoundError: No module named "
        "'no_such_module_at_all'. Repair or update acme-broken 1.2, or uninstall it."
    )
    assert "RuntimeError: no licence" in refusal("worse")
    assert connector_class("plm").__name__ == "Works"
    assert {"broken", "worse", "plm"} <= set(connector_names())


def test_a_name_that_two_distributions_offer_is_rejected_with_both_names(installer: Installer) -> None:
    installer.install("acme-plm", "registry_works", WORKS, plm="Works")
    installer.install("other-plm", "registry_other", WORKS, plm="Works")
    assert refusal("plm") == (
        "The connector 'plm' is offered by acme-plm 1.2 and other-plm 1.2. Uninstall all of them but one."
    )


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        ("NOT_A_CLASS", "is no subclass of ingestd.sdk.Connector"),
        ("NoOptions", "declares no Options model"),
        ("Absent", "can't be loaded: AttributeError"),
    ],
)
def test_an_object_that_is_no_connector_is_rejected(attribute: str, words: str, installer: Installer) -> None:
    installer.install("acme-plm", "registry_works", WORKS, plm=attribute)
    assert words in refusal("plm")


def test_a_connector_of_another_contract_is_refused(installer: Installer) -> None:
    installer.install("acme-later", "acme_later", WORKS, later="OfAnotherContract")
    assert refusal("later") == (
        "The connector 'later' of acme-later 1.2 is for version 2 of the connector contract; this ingestd has version 1. "
        "Install a version of it for contract 1."
    )
