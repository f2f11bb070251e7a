"""If-Match and If-None-Match against a version: a number, or the digest of bytes (contract G17; RFC 9110, 13.1)."""

from __future__ import annotations

from workspaced.core.problems import PreconditionFailedProblem


def not_modified(if_none_match: str | None, version: int | str) -> bool:
    """Whether the caller has this version already. The weak form compares equal here."""
    return if_none_match is not None and _names(if_none_match, version, weak=True)


def require_match(if_match: str | None, version: int | str) -> None:
    """Let a change through only on the version that the caller has seen.

    Raises:
        PreconditionFailedProblem: the caller names others.
    """
    if if_match is not None and not _names(if_match, version, weak=False):
        raise PreconditionFailedProblem


def _names(header: str, version: int | str, *, weak: bool) -> bool:
    tags = {tag.strip() for tag in header.split(",")}
    return "*" in tags or f'"{version}"' in tags or (weak and f'W/"{version}"' in tags)
