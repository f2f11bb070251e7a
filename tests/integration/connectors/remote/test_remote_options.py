"""The settings of a remote folder: mistakes in sentences, addresses, and stores that are built without a server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from connectors.remote import RemoteConnector, RemoteOptions
from connectors.remote.address import parse_address
from connectors.remote.object_store import ObjectStore
from ingestd.sdk import SourceBroken, SourceContext

SFTP = {"url": "sftp://u@h/drop", "known_hosts": "known_hosts", "key_file": "key"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "ftp://h/x"}, "begins with sftp://"),
        ({"url": "sftp://h/x"}, "names no user"),
        ({"url": "sftp://u:secret@h/x"}, "must not hold a password"),
        ({"url": "s3://bucket/../x"}, "must not have a part . or .."),
        ({"url": "s3://key@bucket/x"}, "has no user"),
        ({"url": "sftp://u@h/x", "key_file": "k"}, "needs known_hosts"),
        ({"url": "sftp://u@h/x", "known_hosts": "k"}, "needs key_file or password"),
        (SFTP | {"after": "archive"}, "set archive"),
        (SFTP | {"after": "archive", "archive": "/drop"}, "another folder than url"),
        (SFTP | {"after": "archive", "archive": "../done"}, "must not have a part . or .."),
        (SFTP | {"ready": ["not-open"]}, "this machine only"),
        ({"url": "s3://b/x", "endpoint": "http://k:s@h"}, "must not hold credentials"),
    ],
)
def test_a_mistake_is_a_sentence_without_secrets(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        RemoteOptions.model_validate(options)
    assert words in str(refused.value.errors()[0]["msg"])


def test_paths_begin_at_the_root_the_home_or_the_bucket() -> None:
    folders = {
        url: parse_address(url).folder for url in ("sftp://u@h/a/b/", "sftp://u@h/~/a", "sftp://u@h", "s3://b/p/q/")
    }
    assert list(folders.values()) == ["/a/b", "a", "/", "p/q"]
    address = parse_address("sftp://u@h:2222/drop")
    assert (address.below("done"), address.below("/done"), address.display("/done")) == (
        "/drop/done", "/done", "sftp://h:2222/done",
    )  # fmt: skip


def test_the_claim_of_a_source_names_its_folders_by_their_addresses() -> None:
    options = RemoteOptions.model_validate(SFTP | {"after": "archive", "archive": "/done"})
    (claim,) = RemoteConnector.claims(options, Path("/etc"))
    assert (claim.folder, claim.excluded[0], claim.takes) == ("sftp://h/drop", "sftp://h/done", True)


@pytest.mark.parametrize(
    "options",
    [
        {"url": "az://container/p", "access_key": "account", "secret_key": "c2VjcmV0"},
        {"url": "gs://bucket/p", "endpoint": "http://127.0.0.1:1"},
    ],
)
def test_a_store_of_azure_or_google_is_built_without_a_request(options: dict[str, Any]) -> None:
    """No test has such a server: only that the settings are those that the library accepts."""
    store = ObjectStore(RemoteOptions.model_validate(options), Path())
    store.close()


def test_settings_that_the_library_refuses_are_a_sentence_without_the_secret() -> None:
    with pytest.raises(SourceBroken, match=r"can't be used with its settings") as refused:
        ObjectStore(RemoteOptions.model_validate({"url": "gs://bucket/p", "key_file": "/nowhere/key.json"}), Path())
    assert "nowhere" not in str(refused.value)


@pytest.mark.parametrize(
    ("module", "options", "extra"),
    [("asyncssh", SFTP, r"ingestd\[sftp\]"), ("obstore", {"url": "s3://b/p"}, r"ingestd\[objects\]")],
)
def test_a_missing_extra_is_named(
    module: str, options: dict[str, Any], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [
        one for one in sys.modules if one.startswith(("connectors.remote.sftp", "connectors.remote.object_store"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SourceBroken, match=f"install {extra}"):
        RemoteConnector(
            RemoteOptions.model_validate(options), SourceContext(pipeline="t", base=Path(), now=lambda: 0.0)
        )
