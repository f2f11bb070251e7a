"""The options of the http connector."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, SecretStr, field_validator, model_validator

from connectors.option_types import CaFile, ConnectorOptions, Text, Texts, as_tuple, checked_by, split_address


def _check_url(url: str) -> None:
    if split_address(url, ("http", "https"), credentials="auth").fragment:
        raise ValueError("an address must not have a fragment (#)")


_Url = Annotated[str, checked_by(_check_url)]

PageKind: TypeAlias = Literal["auto", "single", "link", "next", "cursor", "offset", "page", "odata"]


class PagingOptions(ConnectorOptions):
    """How the service divides its records into pages."""

    type: PageKind = Field(
        description=(
            "auto: a Link header, or a member with the address of the next page; without either, one page. link: the header Link"
            " with rel=next. next: a member holds the address of the next page. cursor: a member holds a token for a parameter."
            " offset and page: a parameter counts records or pages, until a page is empty. odata: the members of OData 2 to 4."
            " single: there is one page."
        )
    )
    path: str = Field(
        default="",
        description="next and cursor: the path of the member with the address or token. Without a value, the page is the last.",
    )
    param: str = Field(default="", description="cursor, offset and page: the query parameter that is set.")
    first: int = Field(default=1, ge=0, description="page: the number of the first page.")
    size_param: str = Field(default="", description="The query parameter for the number of records of a page.")
    size: int | None = Field(
        default=None, ge=1, description="The number of records to request; the service may send fewer."
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.type in {"next", "cursor"} and not self.path:
            raise ValueError(f"page type {self.type} needs path: the member that leads to the next page")
        if self.type in {"cursor", "offset", "page"} and not self.param:
            raise ValueError(f"page type {self.type} needs param: the query parameter that selects a page")
        if bool(self.size_param) != (self.size is not None):
            raise ValueError("size and size_param belong together")
        return self


class NoAuth(ConnectorOptions):
    """No credentials."""

    type: Literal["none"] = "none"


class BasicAuth(ConnectorOptions):
    """A user and a password with each request."""

    type: Literal["basic"]
    user: str
    password: SecretStr


class BearerAuth(ConnectorOptions):
    """A fixed token with each request."""

    type: Literal["bearer"]
    token: SecretStr


class HeaderAuth(ConnectorOptions):
    """A header with each request that only this service defines."""

    type: Literal["header"]
    name: Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
    value: SecretStr


class OAuthClientAuth(ConnectorOptions):
    """A token of an OAuth 2 server, by client credentials. A new token is requested after the service refuses the token."""

    type: Literal["oauth2-client"]
    token_url: _Url = Field(description="The address at which the authorization server issues tokens.")
    client_id: Text
    client_secret: SecretStr
    scope: str = ""


Auth: TypeAlias = Annotated[NoAuth | BasicAuth | BearerAuth | HeaderAuth | OAuthClientAuth, Field(discriminator="type")]


class SinceOptions(ConnectorOptions):
    """How only the records since the last reading are requested."""

    param: Text = Field(
        description="The query parameter that takes the time or number, such as modified_since or $filter."
    )
    field: Text = Field(description="The field with the time or number of a record's change; nested names by dots.")
    value: str = Field(
        default="{since}", description="The value of the parameter; {since} is replaced, as in Modified ge {since}."
    )
    start: str = Field(
        default="",
        description=(
            "The value of the parameter for the first reading; empty: everything is requested, without the parameter."
        ),
    )
    overlap: float = Field(
        default=0,
        ge=0,
        description=(
            "How far each reading goes back, for records that appear later than their time: in seconds, or in the"
            " unit of the field if it is a number."
        ),
    )

    @field_validator("value")
    @classmethod
    def _has_place(cls, value: str) -> str:
        if "{since}" not in value:
            raise ValueError("value must hold {since}")
        return value


class HttpOptions(ConnectorOptions):
    """A resource of an HTTP service that returns records as JSON."""

    url: _Url = Field(description="The address of the first page, without credentials.")
    params: dict[str, SecretStr] = Field(
        default_factory=dict, description="Query parameters of every request; the values are treated as secrets."
    )
    headers: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="Headers of every request to this service; their values are treated as secrets.",
    )
    auth: Auth = Field(default=NoAuth(), description="The credentials.")
    records: str = Field(
        default="",
        description=(
            "The path to the array of records: names joined by dots, such as data.items. Empty: the document is the array or one"
            " record; for odata the array is found."
        ),
    )
    page: PageKind | PagingOptions = Field(
        default="auto", description="How the service divides its records into pages."
    )
    mode: Literal["snapshot", "incremental"] = Field(
        default="snapshot", description="Read all records each time, or only those since the last reading (since)."
    )
    since: SinceOptions | None = Field(
        default=None, description="incremental: how records since the last reading are requested."
    )
    key: Texts | None = Field(
        default=None,
        description=(
            "The field, or the fields, that identify a record; nested names by dots. With a key, a record on two pages is read"
            " once, and `ingestd trace` shows the key. Required for deletes: remove with several pages."
        ),
    )
    deletes: Literal["keep", "remove"] = Field(
        default="keep",
        description=(
            "Whether the entries of records that the service no longer has are removed. Several pages are then accepted only if"
            " the number of records is the total of the service, or if two readings in succession find the same keys. If the"
            " service states another total, nothing is removed."
        ),
    )
    total: str = Field(
        default="", description="The path of the member with the number of all records; found for odata."
    )
    max_pages: int = Field(default=1000, ge=1, le=100_000, description="A reading with more pages is refused.")
    max_bytes: int = Field(
        default=2**30,
        ge=1,
        description="A reading with more bytes, unpacked, is refused. A page may have at most 64 MiB.",
    )
    timeout_seconds: float = Field(
        default=30, gt=0, le=600, description="How long the service may be silent; a page may take ten times as long."
    )
    ca_file: CaFile = None

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name in headers:
            if name.lower() in {"host", "authorization", "accept-encoding", "if-none-match", "if-modified-since"}:
                raise ValueError(f"the header {name} is set by the connector; for credentials use auth")
        return headers

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.mode == "incremental") != (self.since is not None):
            raise ValueError("mode incremental and since belong together")
        if self.mode == "incremental" and self.deletes == "remove":
            raise ValueError(
                "deletes: remove needs mode: snapshot; a request for new records does not show removed records"
            )
        if isinstance(self.page, str) and self.page in {"next", "cursor", "offset", "page"}:
            raise ValueError(f"page {self.page} needs settings: write page: {{type: {self.page}, …}}")
        if self.deletes == "remove" and not self.keys and self.paging.type != "single":
            raise ValueError("deletes: remove with pages needs key, to compare the records of two readings")
        return self

    @property
    def keys(self) -> tuple[str, ...]:
        """The fields of the option ``key``; empty without this option."""
        return as_tuple(self.key)

    @property
    def paging(self) -> PagingOptions:
        """The settings of the option ``page``."""
        return self.page if isinstance(self.page, PagingOptions) else PagingOptions(type=self.page)

    def identity(self) -> dict[str, Any]:
        """Return the options without secrets for which a cursor is valid. Limits are left out."""
        return self.model_dump(
            mode="json",
            include={"url", "records", "page", "mode", "since", "key", "deletes", "total"},
        )

    def request_settings(self) -> dict[str, Any]:
        """Return the settings of each request for which a cursor is valid; empty if none is configured.

        The result contains secrets. Passwords and tokens of ``auth`` are left out, because they are renewed regularly.
        """
        sent = {"params": self.params, "headers": self.headers}
        settings: dict[str, Any] = {
            member: {name: value.get_secret_value() for name, value in values.items()}
            for member, values in sent.items()
            if values
        }
        if self.auth.type != "none":
            settings["auth"] = self.auth.model_dump(mode="json")  # secrets as asterisks
        return settings
