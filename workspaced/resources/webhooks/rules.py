"""Rules that concern several members of a webhook, or depend on settings (contract H4, H5, H15). Performs no I/O."""

from __future__ import annotations

from workspaced.core.problems import Invalid, UnprocessableProblem
from workspaced.resources.webhooks.values import NewWebhook, OAuth
from workspaced.security.egress.rules import EgressRules, UnsafeTarget


def with_defaults(new: NewWebhook, egress: EgressRules) -> NewWebhook:
    """Return the create body with a label, by default the host of the URL.

    Raises:
        Invalid: the credentials have no secret.
        UnprocessableProblem: deliveries may not be sent to a URL of the body.
    """
    require_safe(new.url, new.oauth, egress)
    label = new.label or default_label(new.url, egress)
    return new.model_copy(update={"oauth": merged_oauth(None, new.oauth), "label": label})


def require_safe(url: str | None, oauth: OAuth | None, egress: EgressRules) -> None:
    """Check URLs before they are stored. Each attempt to deliver checks the addresses of their hosts.

    Raises:
        UnprocessableProblem: deliveries may not be sent to one of these URLs.
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
    """Return the host of a URL that `require_safe` accepted."""
    return egress.target(url).host


def merged_oauth(stored: OAuth | None, given: OAuth | None) -> OAuth | None:
    """Return ``given``. If it has no secret, add the stored secret.

    Raises:
        Invalid: no secret is stored, or the stored secret is for another token URL.
    """
    if given is None or given.client_secret:
        return given
    if stored is None or stored.token_url != given.token_url:
        why = "is required if none is stored, or if tokenUrl changes"
        raise Invalid.at("/oauthConnection/clientSecret", "required", f"/oauthConnection/clientSecret {why}.")
    return given.model_copy(update={"client_secret": stored.client_secret})
