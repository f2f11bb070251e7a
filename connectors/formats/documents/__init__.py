"""YAML, TOML and INI: small documents, each of which is one record."""

from connectors.formats.documents.options import Ini, Toml, Yaml

__all__ = ["Ini", "Toml", "Yaml"]
