"""Text files: their encoding, and reading them as UTF-8."""

from connectors.formats.text.encoding import DETECT, Encoding, EncodingName, detect_encoding, encoding_by_name
from connectors.formats.text.text_file import TextFile, open_text

__all__ = ["DETECT", "Encoding", "EncodingName", "TextFile", "detect_encoding", "encoding_by_name", "open_text"]
