"""The service's whole records.

A member of the interface document is required unless the document calls it optional. A member that the service contract
adds is None if a service knows only the document. Numbers are those of JSON: 1 is an int, 1.0 a float. Other members are
ignored. Records that requests contain are here, too.
"""

from ingestd.client.records.administration import ApiKey, AuditRow, Grant, Health, IssuedApiKey
from ingestd.client.records.base import Number
from ingestd.client.records.files import Conversion, ConversionOutput, FileInfo, FileVersion, Upload, UploadLink
from ingestd.client.records.history import EntryState, PastChange, SinkComparison, SinkDifference, SinkHistory
from ingestd.client.records.sinks import (
    BulkCounts,
    Entry,
    EntryChange,
    Icon,
    ItemProblem,
    ItemResult,
    NewEntry,
    PartialResult,
    Sink,
    SinkInfo,
)
from ingestd.client.records.webhooks import (
    Attempt,
    Delivery,
    DeliveryDetail,
    DeliveryStatus,
    EventType,
    OAuthConnection,
    Webhook,
)
from ingestd.client.records.workspaces import Block, Workspace

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
    "EntryState",
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
    "PastChange",
    "Sink",
    "SinkComparison",
    "SinkDifference",
    "SinkHistory",
    "SinkInfo",
    "Upload",
    "UploadLink",
    "Webhook",
    "Workspace",
]
