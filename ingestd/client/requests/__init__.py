"""Every method that both clients have, declared in one class per section of the API.

Ids of sinks are UUIDs or visible ids (``SNK-1``). A parameter that is not given (``UNSET``) is not sent, and its member
stays as it is; None unsets it. ``if_match`` makes a change only if the record has that version (its ``etag``).
``if_none_match`` raises ``NotModified`` if that version is current. If a request is repeated within a day with the same
``idempotency_key``, the service repeats its response and changes nothing. ``client_id`` replaces the client's own.
"""

from ingestd.client.requests.administration import AdministrationMethods
from ingestd.client.requests.files import FileMethods
from ingestd.client.requests.history import HistoryMethods
from ingestd.client.requests.sinks import SinkMethods
from ingestd.client.requests.webhooks import WebhookMethods
from ingestd.client.requests.workspaces import WorkspaceMethods


class ServiceMethods(WorkspaceMethods, SinkMethods, HistoryMethods, FileMethods, WebhookMethods, AdministrationMethods):
    """All methods that both clients have."""
