"""The group stage: one record for each group of records of a partition, made before the mapping."""

from ingestd.core.groups.aggregation import Aggregation
from ingestd.core.groups.specification import AggregateSpec, GroupSpec

__all__ = ["AggregateSpec", "Aggregation", "GroupSpec"]
