"""The log of who changed what (contract G26)."""
