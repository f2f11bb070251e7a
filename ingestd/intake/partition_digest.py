"""The digest of everything that decides which entries a source yields: partitions with another digest are read again."""

from __future__ import annotations

import hashlib
import json

from ingestd.core.contract import Contract
from ingestd.core.groups import Aggregation
from ingestd.core.mapping import Mapping
from ingestd.sdk import Connector


def partition_digest(
    mapping: Mapping, groups: Aggregation | None, contract: Contract | None, connector: Connector
) -> str:
    """Return the digest of mapping, tables, groups, contract and `Connector.record_settings`.

    A part that is not configured does not change the digest.
    """
    digest = mapping.digest
    if groups is not None:
        digest = groups.digest_with(digest)
    if contract is not None:
        digest = contract.digest_with(digest)
    settings = connector.record_settings
    if not settings:
        return digest
    text = json.dumps([digest, "source", settings], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
