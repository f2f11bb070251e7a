"""The sections of the API description: their prose, the parameters of paths, and schemas that types can't express."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ingestd.wire.writer import NAME
from workspaced.core.json_schema import OBJECT, UUID, described, string
from workspaced.http.description import ApiSection, Parameter
from workspaced.resources.api_keys.rules import new_key_schema
from workspaced.resources.data_sinks.rules import Key
from workspaced.resources.data_sinks.schemas import sink_schemas
from workspaced.settings.model import Limits

_WORKSPACE: Final = Parameter("workspaceId", "The workspace.", UUID)
_SINK: Final = Parameter(
    "dataSinkId",
    "The sink's id, or its visibleId such as SNK-7.",
    string(pattern=r"^([0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[A-Za-z]{1,8}-[1-9][0-9]{0,8})$"),
    absent="`data_sink_not_found`: the workspace has no such sink.",
)
_NO_ENTRY: Final = "`entry_not_found`: the sink has no such entry."


def api_sections(limits: Limits) -> Mapping[str, ApiSection]:
    """Return the sections, by the first part of the names of the operations."""
    operating = ApiSection(
        title="Operating", description="For operators of the service; open to every caller that reaches it."
    )
    metadata = f"Any object of at most {limits.metadata_bytes} bytes, nested {limits.metadata_depth} levels deep."
    return {
        "workspaces": ApiSection(
            title="Workspaces",
            description="""\
A workspace holds blocks, data sinks and files. A key may be limited to one workspace.
A deleted workspace is absent for every request; an operator of the service can restore it for a while.
""",
            path={"workspace": Parameter("id", "The workspace.", UUID)},
        ),
        "data_sinks": ApiSection(
            title="Data sinks",
            description="""\
A data sink is a named container of key/value entries inside a workspace. A value is text and is stored byte for byte.
`mass` sets many entries with one request: the body is one object, a list, or `{"entries": […]}`.
""",
            path={
                "workspace": _WORKSPACE,
                "sink": _SINK,
                "key": Parameter(
                    "key",
                    "The entry's key, percent-encoded (`a/b` is `a%2Fb`). If no entry has this key, an entry's id.",
                    string(shortest=1),
                    absent=_NO_ENTRY,
                ),
                "data_sinks.mass_by_key:key": Parameter(
                    "key", "The entry's key, percent-encoded.", Key().schema(limits), absent=_NO_ENTRY
                ),
            },
            schemas=sink_schemas(limits),
        ),
        "data_sink_history": ApiSection(
            title="History of data sinks",
            description="""\
The history of a sink has the former values of its entries with their writers. It is an extension of the interface, and off
unless the service or the sink sets how many changes of each entry are kept. A write of an equal value is no change.
""",
            path={
                "workspace": _WORKSPACE,
                "sink": _SINK,
                "key": Parameter("key", "The entry's key, percent-encoded.", string(shortest=1)),
            },
        ),
        "writer_leases": ApiSection(
            title="Leases of writers",
            description="""\
If several processes can send requests as one writer (`X-Writer`), the lease decides which process may send. Leases are an
extension of the interface. """,
            path={
                "writer": Parameter(
                    "writer",
                    "The name of the writer.",
                    string(pattern=f"^{NAME}$"),
                    absent="`lease_not_found`: this writer has no lease.",
                )
            },
        ),
        "blocks": ApiSection(
            title="Blocks",
            description="""\
The blocks of a workspace form one tree below its root block. The service computes `children` and `path` from the parents.
Ids of property groups, figures, attachments and statuses are stored as they are sent.
""",
            path={
                "workspace": _WORKSPACE,
                "block": Parameter(
                    "id", "The block.", UUID, absent="`block_not_found`: the workspace has no such block."
                ),
            },
        ),
        "cloud_storage": ApiSection(
            title="Cloud storage",
            description="""\
Files belong to a workspace. Bytes are sent to a signed link in three steps (`upload-link`, PUT, `upload-complete`), or in
one request. Each upload is a version. The outputs of a file's conversion can be downloaded.

The response for a file that does not exist is the same as for a file that the caller may not read: 403.
""",
            path={
                "file": Parameter("id", "The file.", UUID),
                "upload": Parameter("uploadId", "The upload that the link is for.", UUID),
            },
            schemas={"Metadata": described(OBJECT, metadata)},
        ),
        "webhooks": ApiSection(
            title="Webhooks",
            description="""\
A webhook receives events at least once, signed by Standard Webhooks 1.0. It belongs to the principal of the key that
created it. The document's `webhooks` describe what is sent.
""",
            path={
                "webhook": Parameter(
                    "id",
                    "The webhook.",
                    UUID,
                    absent="`webhook_not_found`: there is no such webhook, or it belongs to another principal.",
                ),
                "delivery": Parameter(
                    "deliveryId",
                    "The delivery.",
                    UUID,
                    absent="`delivery_not_found`: the webhook has no such delivery.",
                ),
            },
        ),
        "api_keys": ApiSection(
            title="API keys",
            description="""\
A key belongs to a principal. It permits what both its scopes and the grants of the principal permit. Records name the
principal as the author. The first key is created by `workspaced keys create`. """,
            path={
                "key": Parameter(
                    "id",
                    "The key's id, which is its second part: `edw_<id>_…`.",
                    string(pattern="^[0-9A-Za-z]{8}$"),
                    absent="`key_not_found`: there is no such key.",
                )
            },
            schemas={"NewApiKey": new_key_schema(limits)},
        ),
        "audit": ApiSection(
            title="Audit log",
            description="Every change, written in the transaction of the change, and every rejected caller.",
        ),
        "health": operating,
        "openapi": operating,
    }
