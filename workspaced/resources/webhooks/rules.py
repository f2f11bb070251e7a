"""What a webhook may be beyond the form of its members (contract H4, H5, H15). Pure."""

from __future__ import annotations

import dataclasses
from typing import Any

from workspaced.core.fields import Fields
from workspaced.core.members import read_body, read_given
from workspaced.core.problems import Invalid, UnprocessableProblem
from workspaced.resources.webhooks.values import GivenOAuth, NewWebhook, OAuth, WebhookChanges
from workspaced.security.egress.rules import EgressRules, UnsafeTarget
from workspaced.settings.model import Limits


def read_new_webhook(body: object, limits: Limits, egress: EgressRules) -> tuple[NewWebhook, tuple[str, ...]]:
    """Return the checked create body, and the names of ignored members.

    Raises:
        Invalid: something is wrong with it.
        UnprocessableProblem: a URL may not be reached.
    """
    new, ignored = read_body(NewWebhook, body, limits)
    require_safe(new.url, new.oauth, egress)
    label = new.label or default_label(new.url, egress)
    return dataclasses.replace(new, oauth=merged_oauth(None, new.oauth), label=label), ignored


def read_webhook_changes(body: object, limits: Limits, egress: EgressRules) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the given fields of `WebhookChanges`, and the names of ignored members.

    ``oauth``, if given, is a `GivenOAuth` or None; an empty ``label`` stands for the default.

    Raises:
        Invalid: something is wrong with it.
        UnprocessableProblem: a URL may not be reached.
    """
    fields = Fields(body)
    given = read_given(WebhookChanges, fields, limits)
    fields.raw("id")
    ignored = fields.finish()
    require_safe(given.get("url"), given.get("oauth"), egress)
    return given, ignored


def require_safe(url: str | None, oauth: GivenOAuth | None, egress: EgressRules) -> None:
    """Accept URLs that may be tried at all. What their names resolve to is checked at each attempt.

    Raises:
        UnprocessableProblem: one may not.
    """
    urls = {"url": url, "oauthConnection/tokenUrl": oauth.token_url if oauth else None}
    for name, one in urls.items():
        if one is None:
            continue
        try:
            egress.target(one)
        except UnsafeTarget as error:
            raise UnprocessableProblem("unsafe_url", f"The URL in {name} can't be used. {error}") from error


def default_label(url: str, egress: EgressRules) -> str:
    """Return the host of a URL that was checked before."""
    return egress.target(url).host


def merged_oauth(stored: OAuth | None, given: GivenOAuth | None) -> OAuth | None:
    """Return the connection, with the stored secret if none was given.

    Raises:
        Invalid: there is no secret to keep, or it would be sent to another address than the one it was given for.
    """
    if given is None:
        return None
    secret = given.client_secret
    if not secret:
        if stored is None or stored.token_url != given.token_url:
            why = "is required where there is none yet, or where tokenUrl changes"
            raise Invalid.at("/oauthConnection/clientSecret", "required", f"/oauthConnection/clientSecret {why}.")
        secret = stored.client_secret
    return OAuth(**{**dataclasses.asdict(given), "client_secret": secret})
