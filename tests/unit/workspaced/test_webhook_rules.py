from __future__ import annotations

import base64
import os
from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from workspaced.core.bodies import read_body
from workspaced.core.problems import Invalid, UnavailableProblem, UnprocessableProblem
from workspaced.resources.webhooks.rules import merged_oauth, with_defaults
from workspaced.resources.webhooks.signature import key_of, masked, new_secret, signature_headers
from workspaced.resources.webhooks.values import NewWebhook, OAuth, SecretRotation, header_of
from workspaced.security.egress.rules import EgressRules
from workspaced.security.secret_box import SecretBox, encryption_key
from workspaced.settings.model import Limits, WorkspacedSettings

URL = "https://hooks.example/in"


def _read(body: object) -> object:
    return with_defaults(read_body(NewWebhook, body, Limits())[0], EgressRules())


def test_only_the_url_is_required_and_the_rest_has_defaults() -> None:
    new, ignored = read_body(NewWebhook, {"url": URL, "extra": 1}, Limits())
    chosen = with_defaults(new, EgressRules())
    assert (chosen.url, chosen.label, chosen.data_events, chosen.enabled) == (URL, "hooks.example", ("*",), True)
    assert (chosen.headers, chosen.oauth, chosen.workspace_ids, chosen.coalesce) == ((), None, (), False)
    assert ignored == ("extra",)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], ""),
        ({}, "/url"),
        ({"url": None}, "/url"),
        ({"url": 7}, "/url"),
        ({"url": URL + "x" * 2_048}, "/url"),
        ({"url": URL, "id": "x"}, "/id"),
        ({"url": URL, "label": " "}, "/label"),
        ({"url": URL, "enabled": "yes"}, "/enabled"),
        ({"url": URL, "coalesce": 1}, "/coalesce"),
        ({"url": URL, "dataEvents": ["with space"]}, "/dataEvents"),
        ({"url": URL, "dataEvents": ["x" * 129]}, "/dataEvents"),
        ({"url": URL, "dataEvents": [7]}, "/dataEvents"),
        ({"url": URL, "headers": ["no colon"]}, "/headers"),
        ({"url": URL, "headers": ["X: a\r\nHost: b"]}, "/headers"),
        ({"url": URL, "headers": [f"X-{n}: 1" for n in range(21)]}, "/headers"),
        ({"url": URL, "headers": ["X: " + "v" * 2_048]}, "/headers"),
        ({"url": URL, "headers": 7}, "/headers"),
        ({"url": URL, "workspaceIds": ["w"]}, "/workspaceIds"),
        ({"url": URL, "ignoreClientIds": ["x" * 129]}, "/ignoreClientIds"),
        ({"url": URL, "signingSecret": "secret"}, "/signingSecret"),
        ({"url": URL, "signingSecret": "whsec_" + base64.b64encode(b"short").decode()}, "/signingSecret"),
        ({"url": URL, "oauthConnection": "x"}, "/oauthConnection"),
        ({"url": URL, "oauthConnection": {"tokenUrl": URL}}, "/oauthConnection/clientId"),
        ({"url": URL, "oauthConnection": {"tokenUrl": URL, "clientId": "c"}}, "/oauthConnection/clientSecret"),
    ],
)
def test_each_mistake_has_its_pointer(body: object, pointer: str) -> None:
    with pytest.raises(Invalid) as refused:
        _read(body)
    assert refused.value.mistakes[0].pointer == pointer


@pytest.mark.parametrize(
    "body",
    [
        {"url": "http://hooks.example/"},
        {"url": "https://127.0.0.1/"},
        {"url": URL, "oauthConnection": {"tokenUrl": "https://[::1]/", "clientId": "c", "clientSecret": "s"}},
    ],
)
def test_an_unsafe_url_is_rejected_although_it_is_well_formed(body: object) -> None:
    # contract H15
    with pytest.raises(UnprocessableProblem) as refused:
        _read(body)
    assert refused.value.code == "unsafe_url"


@pytest.mark.parametrize(
    "name",
    ["Host", "content-length", "Content-Type", "Transfer-Encoding", "Connection", "Proxy-Authorization", "WEBHOOK-id"],
)
def test_headers_that_the_delivery_sets_are_rejected(name: str) -> None:
    # contract H4
    assert header_of(f"{name}: x") is None


@pytest.mark.parametrize("text", ["", ":", "a b: x", "X: a\nb", "X: a\rb", "X: a\0b", "Ü: x", "X : y"])
def test_an_invalid_header_is_rejected(text: str) -> None:
    # contract H4
    assert header_of(text) is None


def test_a_header_consists_of_name_and_value() -> None:
    assert header_of("Authorization: Bearer a:b") == ("Authorization", "Bearer a:b")
    assert header_of("X-Empty:") == ("X-Empty", "")


def test_the_client_secret_is_kept_unless_the_target_changes() -> None:
    # contract H5
    stored = OAuth.model_construct(token_url=URL, client_id="c", client_secret="hidden", scope="a")
    given = OAuth.model_construct(token_url=URL, client_id="d", client_secret="", scope="", audience="x")
    merged = merged_oauth(stored, given)
    assert merged == OAuth.model_construct(token_url=URL, client_id="d", client_secret="hidden", audience="x")
    assert merged_oauth(stored, None) is None
    elsewhere = OAuth.model_construct(token_url=URL + "2", client_id="c", client_secret="", scope="", audience="")
    with pytest.raises(Invalid, match="clientSecret"):
        merged_oauth(stored, elsewhere)


@pytest.mark.parametrize("grace", [-1, 604_801, "1", 1.5, True])
def test_a_grace_period_out_of_range_is_rejected(grace: object) -> None:
    with pytest.raises(Invalid):
        read_body(SecretRotation, {"gracePeriodSeconds": grace}, Limits())


@pytest.mark.parametrize(
    ("body", "seconds"), [({}, 86_400), ({"gracePeriodSeconds": None}, 86_400), ({"gracePeriodSeconds": 0}, 0)]
)
def test_a_grace_period_is_optional(body: object, seconds: int) -> None:
    assert read_body(SecretRotation, body, Limits())[0].seconds == seconds


def test_a_signature_is_verified_by_the_standard_s_own_library_with_each_secret() -> None:
    # contract H9
    secrets = [new_secret(os.urandom), new_secret(os.urandom)]
    body = '{"a": "ü"}'.encode()
    now = int(datetime.now(UTC).timestamp())
    headers = dict(signature_headers("evt_1", body, seconds=now, secrets=secrets))
    for secret in secrets:
        assert Webhook(secret).verify(body, headers) == {"a": "ü"}
    for verifier, sent in ((Webhook(new_secret(os.urandom)), body), (Webhook(secrets[0]), body + b" ")):
        with pytest.raises(WebhookVerificationError):
            verifier.verify(sent, headers)


def test_a_secret_has_256_random_bits_and_only_its_end_is_shown() -> None:
    # contract H3
    secret = new_secret(os.urandom)
    assert len(key_of(secret) or b"") == 32
    assert masked(secret) == f"whsec_…{secret[-4:]}"
    assert key_of("whsec_!") is None
    assert key_of("sk_" + secret) is None


def test_a_sealed_value_is_opened_only_with_its_key_and_purpose() -> None:
    secret_box = SecretBox(os.urandom(32))
    sealed = secret_box.seal(b"secret", purpose="a")
    assert b"secret" not in sealed
    assert secret_box.open(sealed, purpose="a") == b"secret"
    for other, purpose in ((secret_box, "b"), (SecretBox(os.urandom(32)), "a"), (SecretBox(None), "a")):
        with pytest.raises(UnavailableProblem, match="WORKSPACED_ENCRYPTION_KEY"):
            other.open(sealed, purpose=purpose)


def test_without_a_key_a_value_is_stored_plainly_and_can_be_read_with_one() -> None:
    stored = SecretBox(None).seal(b"secret", purpose="a")
    assert SecretBox(os.urandom(32)).open(stored, purpose="a") == b"secret"


def test_an_invalid_key_is_reported_without_quoting_it() -> None:
    assert encryption_key({}) is None
    key = os.urandom(32)
    assert encryption_key({"WORKSPACED_ENCRYPTION_KEY": base64.b64encode(key).decode()}) == key
    for wrong in ("c2hvcnQ=", "not base64!"):
        with pytest.raises(ValueError, match="must be 32 bytes") as refused:
            encryption_key({"WORKSPACED_ENCRYPTION_KEY": wrong})
        assert wrong not in str(refused.value)


def test_no_repr_contains_a_secret(tmp_path: object) -> None:
    body = {
        "url": URL,
        "signingSecret": new_secret(os.urandom),
        "headers": ["Authorization: Bearer hidden"],
        "oauthConnection": {"tokenUrl": URL, "clientId": "c", "clientSecret": "hidden"},
    }
    new = with_defaults(read_body(NewWebhook, body, Limits())[0], EgressRules())
    assert "hidden" not in repr(new)
    assert str(body["signingSecret"]) not in repr(new)
    settings = WorkspacedSettings(data=tmp_path, encryption_key=b"k" * 32)  # type: ignore[arg-type]
    assert "kkk" not in repr(settings)
