"""YAML, TOML and INI: small documents that are one record each."""

from connectors.formats.documents.options import Ini, Toml, Yaml

__all__ = ["Ini", "Toml", "Yaml"]
