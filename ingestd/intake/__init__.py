"""Source to mirror: reading what changed, and telling the source what is settled."""

from ingestd.intake.reader import PassReport, Reader
from ingestd.intake.supervisor import SourceSupervisor

__all__ = ["PassReport", "Reader", "SourceSupervisor"]
