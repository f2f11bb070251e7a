from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ingestd.registry import connector_class, connector_names
from ingestd.settings.validation import ConnectorUnusable

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
"""


class Installer:
    """Installs distributions into a folder on the import path, as an unpacked wheel is installed."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        self._modules: list[str] = []

    def install(self, distribution: str, module: str, code: str, **points: str) -> None:
        site = self._folder / distribution
        information = site / f"{distribution.replace('-', '_')}-1.2.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        lines = "".join(f"{name} = {module}:{attribute}\n" for name, attribute in points.items())
        (information / "entry_points.txt").write_text(f"[ingestd.connectors]\n{lines}")
        (site / f"{module}.py").write_text(code)
        self._monkeypatch.syspath_prepend(str(site))
        self._monkeypatch.delitem(sys.modules, module, raising=False)


@pytest.fixture
def installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installer:
    return Installer(tmp_path, monkeypatch)


def refusal(name: str) -> str:
    with pytest.raises(ConnectorUnusable) as caught:
        connector_class(name)
    return str(caught.value)


def test_an_installed_connector_is_found_by_its_name(installer: Installer) -> None:
    installer.install("acme-plm", "registry_works", WORKS, plm="Works")
    assert connector_class("plm").__name__ == "Works"
    assert "plm" in connector_names()


def test_the_connectors_of_this_distribution_are_installed() -> None:
    assert {"database", "directory"} <= set(connector_names())


def test_an_unknown_name_is_rejected_with_the_nearest_one(installer: Installer) -> None:
    installer.install("acme-plm", "registry_works", WORKS, teamcentre="Works")
    assert refusal("teamcenter") == "There is no connector 'teamcenter'. Did you mean 'teamcentre'?"
    assert refusal("zzzzzz").startswith("There is no connector 'zzzzzz'. Installed are: ")


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
