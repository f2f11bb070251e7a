"""XML: the elements at one path of a document; each is a record."""

from connectors.formats.xml.options import Xml
from connectors.formats.xml.reader import read_xml

__all__ = ["Xml", "read_xml"]
