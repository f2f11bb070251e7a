"""Intake from the sources to the mirror: reads new records, and notifies connectors of acknowledged partitions."""

from ingestd.intake.reader import PassReport, Reader
from ingestd.intake.supervisor import SourceSupervisor

__all__ = ["PassReport", "Reader", "SourceSupervisor"]
