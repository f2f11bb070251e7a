"""If-Match and If-None-Match against a version: a number, or the digest of bytes (contract G17; RFC 9110, 13.1)."""

from __future__ import annotations

from workspaced.core.problems import PreconditionFailedProblem


def not_modified(if_none_match: str | None, version: int | str) -> bool:
    """Return whether the caller already has this version. Weak entity tags compare equal (If-None-Match)."""
    return if_none_match is not None and _matches(if_none_match, version, weak=True)


def require_match(if_match: str | None, version: int | str) -> None:
    """Check that the version is one that If-Match names.

    Raises:
        PreconditionFailedProblem: If-Match names other versions only.
    """
    if if_match is not None and not _matches(if_match, version, weak=False):
        raise PreconditionFailedProblem


def _matches(header: str, version: int | str, *, weak: bool) -> bool:
    tags = {tag.strip() for tag in header.split(",")}
    return "*" in tags or f'"{version}"' in tags or (weak and f'W/"{version}"' in tags)
