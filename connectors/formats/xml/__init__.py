"""XML: the elements at one path of a document; each is a record."""

from connectors.formats.xml.options import Xml

__all__ = ["Xml"]
