from __future__ import annotations

import uuid

import pytest

from ingestd.client.errors import NotFound, NotModified, PreconditionFailed, Unprocessable
from ingestd.client.records import OAuthConnection
from tests.support.client_calls import AnyClient, done

_URL = "https://hooks.example.com/in"


async def test_a_webhook_is_created_read_changed_and_deleted(client: AnyClient) -> None:
    connection = OAuthConnection(
        token_url="https://login.example.com/token", client_id="i", client_secret="hidden-one", scope="s"
    )
    wanted = str(uuid.uuid4())
    made = await done(
        client.create_webhook(
            _URL,
            id=wanted,
            label="Hook",
            data_events=["data_sink.*", "nonsense"],
            headers=["Authorization: hidden-two"],
            oauth_connection=connection,
            ignore_client_ids=["me"],
            coalesce=True,
            enabled=False,
        )
    )
    assert made == wanted
    webhook = await done(client.get_webhook(wanted))
    assert (webhook.label, webhook.url, webhook.data_events) == ("Hook", _URL, ("data_sink.*", "nonsense"))
    assert webhook.oauth_connection == OAuthConnection(token_url=connection.token_url, client_id="i", scope="s")
    assert (webhook.headers, webhook.enabled, webhook.coalesce) == (("Authorization: hidden-two",), False, True)
    assert (webhook.unknown_data_events, webhook.ignore_client_ids) == (("nonsense",), ("me",))
    with pytest.raises(NotModified):
        await done(client.get_webhook(wanted, if_none_match=webhook.etag))
    changed = await done(client.update_webhook(wanted, label="Other", oauth_connection=None, if_match=webhook.etag))
    assert (changed.label, changed.oauth_connection, changed.url) == ("Other", OAuthConnection(), _URL)
    with pytest.raises(PreconditionFailed):
        await done(client.update_webhook(wanted, label="x", if_match=webhook.etag))
    rotated = await done(client.rotate_webhook_secret(wanted, grace_period_seconds=60))
    assert rotated.signing_secret.startswith("whsec_")
    assert rotated.signing_secret != webhook.signing_secret
    for shown in (repr(connection), repr(webhook), repr(rotated)):
        assert not any(secret in shown for secret in ("hidden", webhook.signing_secret, rotated.signing_secret))
    assert (await done(client.rotate_webhook_secret(wanted))).signing_secret != rotated.signing_secret
    assert (await done(client.delete_webhook(wanted))).label == "Other"
    with pytest.raises(NotFound):
        await done(client.get_webhook(wanted))


async def test_a_forbidden_address_of_a_webhook_is_rejected(client: AnyClient) -> None:
    with pytest.raises(Unprocessable) as caught:
        await done(client.create_webhook("https://user:hidden@hooks.example.com/"))
    assert caught.value.code == "unsafe_url"
    assert "hidden" not in str(caught.value)


async def test_webhooks_are_listed_in_part(client: AnyClient) -> None:
    label = uuid.uuid4().hex
    made = [await done(client.create_webhook(_URL, label=f"{label} {number}", enabled=False)) for number in range(5)]
    page = await done(client.list_webhooks(search=label, take=2, skip=1, sorted_by="label", sort_order="ASC"))
    assert [webhook.id for webhook in page] == made[1:3]
    for webhook_id in made:
        await done(client.delete_webhook(webhook_id or ""))
