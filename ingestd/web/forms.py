"""Actions of the pages: the check of a form, and the result that the next page shows."""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from dataclasses import dataclass

from ingestd.web.message import WebRequest

TOKEN_FIELD = "form_token"  # noqa: S105 - the name of a field
_RESULTS_AT_MOST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """The result of an action. ``is_done``: the action was performed."""

    sentence: str
    is_done: bool


class Forms:
    """The token of the forms, which each process creates, and the results of the last actions.

    Another site can send a form, but it can't read a page with the token.
    """

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self._results: OrderedDict[str, ActionResult] = OrderedDict()

    def accepts(self, request: WebRequest) -> bool:
        """Return True if a page of this process has sent the form."""
        try:
            given = request.form.get(TOKEN_FIELD, "")
        except ValueError:
            return False
        return hmac.compare_digest(given.encode(), self.token.encode())

    def remember(self, result: ActionResult) -> str:
        """Store the result of an action for the next page. Return the result's number for the URL."""
        number = secrets.token_urlsafe(8)
        self._results[number] = result
        while len(self._results) > _RESULTS_AT_MOST:
            self._results.popitem(last=False)
        return number

    def result(self, number: str) -> ActionResult | None:
        """Return the stored result; None if there is none."""
        return self._results.get(number)
