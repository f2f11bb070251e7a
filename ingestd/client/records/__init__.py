"""The service's records, whole.

A member that the document names is required, where it is not called optional; one that the service contract adds is None
where a service knows only the document. Numbers are what JSON has: 1 is an int, 1.0 a float. Members that are not
listed are ignored. Bodies of requests are here, too, where they hold a list of things.
"""

from ingestd.client.records.api_keys import ApiKey, Grant, IssuedApiKey
from ingestd.client.records.audit import AuditRow
from ingestd.client.records.base import Number
from ingestd.client.records.blocks import Block
from ingestd.client.records.deliveries import Attempt, Delivery, DeliveryDetail, DeliveryStatus
from ingestd.client.records.files import Conversion, ConversionOutput, FileInfo, FileVersion, Upload, UploadLink
from ingestd.client.records.health import Health
from ingestd.client.records.mass import BulkCounts, EntryChange, ItemProblem, ItemResult, PartialResult
from ingestd.client.records.sinks import Entry, Icon, NewEntry, Sink, SinkInfo
from ingestd.client.records.webhooks import EventType, OAuthConnection, Webhook
from ingestd.client.records.workspaces import Workspace

__all__ = [
    "ApiKey",
    "Attempt",
    "AuditRow",
    "Block",
    "BulkCounts",
    "Conversion",
    "ConversionOutput",
    "Delivery",
    "DeliveryDetail",
    "DeliveryStatus",
    "Entry",
    "EntryChange",
    "EventType",
    "FileInfo",
    "FileVersion",
    "Grant",
    "Health",
    "Icon",
    "IssuedApiKey",
    "ItemProblem",
    "ItemResult",
    "NewEntry",
    "Number",
    "OAuthConnection",
    "PartialResult",
    "Sink",
    "SinkInfo",
    "Upload",
    "UploadLink",
    "Webhook",
    "Workspace",
]
