"""Shipments in a folder and in a bucket: whole or absent, verified, encrypted, and pruned."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from pydantic import SecretStr

from ingestd.core.errors import ConfigurationError
from ingestd.settings.standby import StandbySettings
from ingestd.standby.place import Place, PlaceUnavailable, open_place
from ingestd.standby.seal import Seal
from ingestd.standby.shipments import BLOCK_BYTES, ShipmentManifest, Shipments, ShipmentsUnreadable, ShippingStopped
from tests.support.object_server import BUCKET, ObjectServer
from tests.support.postgres_databases import Databases
from tests.support.refusing_proxy import refusing_proxy
from tests.support.scripted_bucket import scripted_bucket

KEY = bytes(range(32))


@pytest.fixture(params=["folder", "bucket", "database"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with ExitStack() as stack:
        url, settings = "place", StandbySettings()
        if request.param == "bucket":
            server: ObjectServer = request.getfixturevalue("object_server")
            url = f"s3://{BUCKET}/standby"
            settings = StandbySettings(endpoint=server.endpoint, access_key="test", secret_key=SecretStr("s3cret-key"))
        elif request.param == "database":
            databases: Databases = request.getfixturevalue("postgres_databases")
            url = stack.enter_context(databases.empty())
        yield stack.enter_context(closing(open_place(url, settings, base=tmp_path)))


class Host:
    """One process that ships a file."""

    def __init__(self, place: Place, folder: Path, *, epoch: int = 2, key: bytes | None = None, keep: int = 2) -> None:
        self.unusable: list[str] = []
        self.shipments = Shipments(place, Seal(key), keep=keep, on_unusable=self.unusable.append)
        self._folder, self._epoch, self._number = folder, epoch, 0
        self.may_write: Callable[[], bool] = lambda: True

    def ship(self, content: bytes) -> ShipmentManifest:
        self._number += 1
        file = self._folder / f"copy-{self._epoch}"
        file.write_bytes(content)
        return self.shipments.ship(
            file, epoch=self._epoch, number=self._number, at=float(self._number), pipelines=["p"],
            may_write=self.may_write,
        )  # fmt: skip

    def fetch(self) -> bytes | None:
        target = self._folder / "fetched"
        return target.read_bytes() if self.shipments.fetch(target) is not None else None


def content(seed: int, blocks: int = 5) -> bytes:
    return random.Random(seed).randbytes(blocks * BLOCK_BYTES - 100)


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_the_newest_shipment_is_fetched_and_unchanged_blocks_are_stored_once(
    place: Place, tmp_path: Path, key: bytes | None
) -> None:
    host = Host(place, tmp_path, key=key)
    assert host.fetch() is None
    first = content(1)
    host.ship(first)
    stored = set(place.names())
    changed = first[:BLOCK_BYTES] + content(2, 1) + first[2 * BLOCK_BYTES - 100 :]
    host.ship(changed)
    added = set(place.names()) - stored
    assert 2 <= len(added) <= 6
    assert Host(place, tmp_path, key=key).fetch() == changed
    assert host.unusable == []


def test_only_the_last_shipments_remain_with_their_blocks(place: Place, tmp_path: Path) -> None:
    former = Host(place, tmp_path, epoch=2)
    former.ship(content(1))
    host = Host(place, tmp_path, epoch=3, keep=2)
    for seed in range(2, 6):
        host.ship(content(seed))
    names = list(place.names())
    assert sorted(place.names("manifests")) == [f"manifests/{3:018d}.{number:012d}" for number in (3, 4)]
    assert len(names) == 2 * 6
    assert host.fetch() == content(5)


def test_a_shipment_without_its_manifest_does_not_exist(place: Place, tmp_path: Path) -> None:
    host = Host(place, tmp_path)
    host.ship(content(1))
    calls = iter([True, False])
    host.may_write = lambda: next(calls)
    with pytest.raises(ShippingStopped):
        host.ship(content(2))
    assert host.fetch() == content(1)


@pytest.mark.parametrize("damage", ["missing", "changed", "cut"])
def test_a_damaged_shipment_is_reported_and_the_one_before_it_is_used(
    place: Place, tmp_path: Path, damage: str
) -> None:
    host = Host(place, tmp_path)
    host.ship(content(1))
    block = host.ship(content(2)).blocks[2]
    stored = place.get(block)
    assert stored is not None
    if damage == "missing":
        place.delete(block)
    else:
        # A valid object with other content is found only by the digest of the whole.
        place.put(block, Seal(None).close(block, content(3, 1)) if damage == "changed" else stored[:-5])
    assert host.fetch() == content(1)
    assert len(host.unusable) == 1
    assert "shipment 2 of epoch 2" in host.unusable[0]


def test_a_deposed_process_changes_nothing_that_its_successor_has_stored(place: Place, tmp_path: Path) -> None:
    former, host = Host(place, tmp_path, epoch=2, keep=1), Host(place, tmp_path, epoch=3, keep=1)
    former.ship(content(1))
    host.ship(content(1))
    former.ship(content(2))
    former.ship(content(3))
    assert Host(place, tmp_path, epoch=4).fetch() == content(1)


def test_without_the_key_nothing_is_read_and_a_plain_shipment_is_not_accepted_with_one(
    place: Place, tmp_path: Path
) -> None:
    secret = b"part 00417 has 0.10 kg " * 20_000
    Host(place, tmp_path, key=KEY).ship(secret)
    for name in place.names():
        assert b"00417" not in (place.get(name) or b"")
    for key in (None, os.urandom(32)):
        other = Host(place, tmp_path, key=key)
        for read in (other.fetch, other.shipments.newest):
            with pytest.raises(
                ShipmentsUnreadable, match=r"No shipment in .* can be read. Give this host the standby.encryption_key"
            ):
                read()
        assert "standby.encryption_key" in other.unusable[0]
    planted = Host(place, tmp_path, epoch=9)
    planted.ship(b"planted")
    assert Host(place, tmp_path, key=KEY).fetch() == secret


def test_a_place_that_returns_something_else_is_no_place(place: Place, tmp_path: Path) -> None:
    host = Host(place, tmp_path)
    kept = place.get
    place.get = lambda name: (kept(name) or b"")[:-1]  # type: ignore[method-assign]
    with pytest.raises(PlaceUnavailable, match="does not return the content that was stored"):
        host.ship(content(1))


def test_of_two_hosts_that_start_at_once_one_names_the_writer(place: Place) -> None:
    assert place.put("identity", b"first", new=True)
    assert not place.put("identity", b"second", new=True)
    assert place.get("identity") == b"first"
    assert list(place.names()) == []


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://db",
        "postgresql://db/w?schema=a-b",
        "postgres://u:hunter2@a:x/w",
        "s3://",
        "s3://user@bucket/x",
        "http://x",
    ],
)
def test_another_address_is_a_mistake(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigurationError, match="standby") as raised:
        open_place(url, StandbySettings(), base=tmp_path)
    assert "hunter2" not in str(raised.value)


def test_an_unreachable_bucket_is_named_without_secrets(tmp_path: Path) -> None:
    settings = StandbySettings(endpoint="http://127.0.0.1:9", access_key="test", secret_key=SecretStr("s3cret-key"))
    unreachable = open_place("s3://bucket/x", settings, base=tmp_path)
    with pytest.raises(PlaceUnavailable, match="s3://bucket/x can't be used now") as raised:
        unreachable.get("identity")
    assert "s3cret" not in str(raised.value)


def test_a_configured_key_is_not_combined_with_credentials_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token-of-the-environment")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    with scripted_bucket() as bucket:
        settings = StandbySettings(endpoint=bucket.endpoint, access_key="test", secret_key=SecretStr("s3cret-key"))
        assert open_place("s3://bench/x", settings, base=tmp_path).get("identity") is None
    assert bucket.heads[0]["authorization"].startswith("AWS4-HMAC-SHA256 Credential=test/")
    assert "x-amz-security-token" not in bucket.heads[0]


def test_no_variable_of_the_environment_leads_to_another_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"):
        monkeypatch.setenv(name, "https://elsewhere.invalid")
    settings = StandbySettings(region="eu-west-1", access_key="test", secret_key=SecretStr("s3cret-key"))
    with refusing_proxy(monkeypatch) as hosts, pytest.raises(PlaceUnavailable):
        open_place("s3://bench/x", settings, base=tmp_path).get("identity")
    assert set(hosts) == {"s3.eu-west-1.amazonaws.com:443"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlaceUnavailable, match="Not a directory"):
        open_place("file/place", StandbySettings(), base=tmp_path).put("identity", b"x")


def test_the_objects_of_a_folder_belong_to_its_account(tmp_path: Path) -> None:
    place = open_place("place", StandbySettings(), base=tmp_path)
    Host(place, tmp_path).ship(b"x")
    for name in place.names():
        with closing((tmp_path / "place" / name).open("rb")) as file:
            assert os.fstat(file.fileno()).st_mode & 0o077 == 0
