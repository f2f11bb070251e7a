"""The texts of ETags (contract G17)."""


def entity_tag(version: int, created_at: int) -> str:
    """Return the text of an ETag that no other state of a resource has, deleted and created again or not.

    A row that is created again starts at version 1; its time of creation distinguishes it.
    """
    return f"{version}-{created_at:x}"
