"""When a file is ready to be read, and why it is not: one rule a module, all of which a file has to meet."""

from connectors.directory.readiness.evaluation import Readiness
from connectors.directory.readiness.registry import ConfiguredRule, RuleName, configure_rule
from connectors.directory.readiness.trailer import Trailer

__all__ = ["ConfiguredRule", "Readiness", "RuleName", "Trailer", "configure_rule"]
