"""Readiness: rules that must all be met before a file is read. Each rule is a module."""

from connectors.directory.readiness.evaluation import Readiness
from connectors.directory.readiness.registry import ConfiguredRule, RuleName, configure_rule
from connectors.directory.readiness.trailer import Trailer

__all__ = ["ConfiguredRule", "Readiness", "RuleName", "Trailer", "configure_rule"]
