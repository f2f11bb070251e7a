"""ReqIF: requirements that tools such as DOORS, Polarion and Capella exchange."""

from connectors.formats.reqif.options import ReqIf

__all__ = ["ReqIf"]
