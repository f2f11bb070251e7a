"""The options that all file sources have, for folders on disk and on servers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from connectors.directory.readiness.registry import ConfiguredRule, RuleName, configure_rule
from connectors.directory.readiness.rule import ReadinessRule
from connectors.directory.readiness.trailer import Trailer
from connectors.formats import PATTERNS, FormatSetting
from connectors.formats.names import expand_glob
from connectors.formats.registry import globs_of
from connectors.option_types import ConnectorOptions, MemberGlob, as_tuple
from ingestd.sdk import first_names

_NAMED = 5
_DATES = {"none": "", "year": "%Y", "month": "%Y/%m", "day": "%Y/%m/%d"}


class DropOptions(ConnectorOptions):
    """Which files are read, when they are ready, and what happens to them."""

    pattern: Annotated[str, Field(min_length=1)] | Annotated[list[str], Field(min_length=1)] = Field(
        default=PATTERNS,
        description=(
            "A glob or a list of globs. A glob without a slash is compared with the file's name, a glob with a slash with the"
            " path below the folder. Names that begin with . or ~$, or end in .tmp, .part, .crdownload or .filepart never match."
        ),
    )
    case_sensitive: bool = Field(
        default=False,
        description="Whether pattern distinguishes RUN01.CSV from run01.csv; by default both match *.csv.",
    )
    recursive: bool = Field(default=False, description="Whether files in sub-folders are read, too.")
    settle_seconds: float = Field(
        default=2,
        ge=0,
        description="How long a file's size and time must be unchanged before it is read; 0 reads it at once.",
    )
    ready: list[RuleName | ConfiguredRule] = Field(
        default=[],
        description=(
            "Rules that must all be met before a file is read: a rule's name, such as marker, or a rule with settings, such"
            ' as {type: marker, name: "{stem}.ready"}. docs/files.md has an example of each.'
        ),
    )
    empty_seconds: float = Field(
        default=60,
        ge=0,
        description="How long a file may be empty before it is rejected; it is read once it has content.",
    )
    canary: Annotated[str, Field(pattern=r"^([^/]+(/[^/]+)*)?$")] = Field(
        default="",
        description=(
            "A file that is in the folder while its share is mounted, such as .mounted. If it is missing, the source counts as"
            " unreachable. Empty: no such file."
        ),
    )
    after: Literal["keep", "archive", "delete"] = Field(
        default="keep", description="What happens to a file once everything from it is delivered or rejected."
    )
    archive_folders: Literal["none", "year", "month", "day"] = Field(
        default="none",
        description=(
            "Sub-folders of the archive by the date on which a file was read: 2026, 2026/03 or 2026/03/14, before the file's own"
            " path."
        ),
    )
    delete_grace_seconds: float = Field(
        default=0,
        ge=0,
        description="With after: delete, how long a file stays after it was read. Then it is deleted if it is unchanged.",
    )
    receipt: bool = Field(
        default=True,
        description=(
            "Whether a receipt NAME.receipt.json with the file's outcome is written: beside the archived file, or in receipts."
        ),
    )
    member: MemberGlob = "*"
    format: FormatSetting = Field(
        default=None,
        description=(
            "The format of the files, by its name or with its own settings, such as {type: csv}. Default: by the suffix of"
            " each file."
        ),
    )

    @model_validator(mode="after")
    def _check_grace(self) -> Self:
        if self.delete_grace_seconds and self.after != "delete":
            raise ValueError("delete_grace_seconds is for after: delete")
        return self

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        kinds = [type(rule) for rule in self.rules]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise ValueError(f"ready names the rule {kind.model_fields['type'].default} twice")
        return self

    def archive_folder(self, ended: float) -> str:
        """Return the sub-folder of the archive for a file. ``ended``: the time when its reading ended, in epoch seconds.

        The present time is not used: if archiving is repeated after midnight, the folder must be the same.
        """
        return datetime.fromtimestamp(ended).astimezone().strftime(_DATES[self.archive_folders])

    @property
    def rules(self) -> tuple[ReadinessRule, ...]:
        """The readiness rules with their settings."""
        return tuple(configure_rule(rule) for rule in self.ready)

    @property
    def trailer(self) -> Trailer | None:
        """The configured rule `trailer`; None if it is not configured."""
        return next((rule for rule in self.rules if isinstance(rule, Trailer)), None)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The globs as a tuple. The default globs include those of the configured format. ``**/`` also matches no folder."""
        globs = as_tuple(self.pattern)
        if self.pattern == PATTERNS and self.format is not None:
            globs = (*PATTERNS, *globs_of(self.format.suffixes))
        return tuple(dict.fromkeys(variant for glob in globs for variant in expand_glob(glob)))

    @property
    def patterns_in_words(self) -> str:
        """The globs as words for a sentence. The default globs and long lists are shortened."""
        if self.pattern == PATTERNS:
            return "the suffixes of the known formats"
        return first_names(as_tuple(self.pattern), _NAMED)
