"""Forms: their fields, the API's errors at the fields, and a save that does not overwrite another user's change.

A field has the name of a member of the API's body, so the JSON Pointer of a mistake names the field.
"""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal, TypeAlias, TypeVar

from workspaced.core.json_body import decode, encode
from workspaced.core.json_schema import Schema
from workspaced.core.problems import Invalid
from workspaced.http.responses import Response
from workspaced.ui.addresses import see_other
from workspaced.ui.page_request import ApiResponse, PageRefused, PageRequest
from workspaced.ui.renderer import PageView, shown_digest, title_of

T = TypeVar("T")
Kind: TypeAlias = Literal["line", "text", "lines", "number", "json", "check", "choice", "several", "secret"]
Link: TypeAlias = tuple[str, str]
"""The URL and the text of a link."""

SHOWN: Final = "shown"
"""The name of the hidden field with the digest of the values that the record had when the form was shown."""
_ATTEMPTS: Final = 5
_KINDS: Final[Mapping[str, Kind]] = {"boolean": "check", "number": "number", "array": "lines", "object": "json"}
_KIND_HINTS: Final[Mapping[str, str]] = {
    "lines": "One on each line.",
    "json": "An object as JSON.",
    "secret": "Empty: the stored secret stays.",
}
_LONGEST_LINE: Final = 4_096
"""A member with a greater maximum length has a text area, not a single line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """A field of a form. A name with a dot is the path of a member in an object.

    ``longest`` None: only the service checks the length. ``options``: the values and labels of a choice. The kind ``several``
    has one chosen value on each line. A field of the kind ``secret`` never shows the stored secret. ``present``: the value that
    another user has stored since the form was shown. Fields that are ``rare`` are folded, unless one of them `is_notable`.
    """

    name: str
    label: str
    kind: Kind = "line"
    value: str = ""
    hint: str = ""
    longest: int | None = None
    required: bool = False
    options: Sequence[tuple[str, str]] = ()
    error: str = ""
    present: str | None = None
    rare: bool = False
    default: str = ""

    @property
    def is_notable(self) -> bool:
        """Return whether the user must see the field even if it is rare."""
        return bool(self.error) or self.present is not None or self.value != self.default


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPage:
    """A page with one form, which is sent to the page's own URL. ``sentences`` are shown between the heading and the form.

    ``trail``: the links above the heading. The last link is the page to which the form returns. The button of a dangerous form
    has the text of the title.
    """

    title: str
    section: str
    trail: Sequence[Link]
    submit: str = "Save"
    fields: Sequence[FormField] = ()
    sentences: Sequence[str] = ()
    hidden: Mapping[str, str] = dataclasses.field(default_factory=dict)
    is_dangerous: bool = False
    problem: str = ""
    status: int = 200

    @property
    def back(self) -> str:
        """The URL of the page to which the form returns."""
        return self.trail[-1][0]

    def filled(self, form: Mapping[str, str]) -> FormPage:
        """Return the page with the user's input in the fields."""
        fields = [
            dataclasses.replace(one, value=form.get(one.name, "") if one.kind != "check" else checked(form, one.name))
            for one in self.fields
        ]
        return dataclasses.replace(self, fields=fields)

    def refused(self, refused: PageRefused) -> FormPage:
        """Return the page with the API's sentences: each at its field, or above the form if it belongs to no field."""
        names = {one.name for one in self.fields}
        by_name = {_field_of(pointer, names): detail for pointer, detail in refused.mistakes}
        fields = [dataclasses.replace(one, error=by_name.pop(one.name, "")) for one in self.fields]
        others = " ".join(by_name.values()) if refused.mistakes else refused.sentence
        return dataclasses.replace(self, fields=fields, problem=others, status=refused.status)

    def view(self) -> PageView:
        """Return the page for the renderer."""
        return PageView(
            template="edit/form.html",
            title=title_of(self.title, *(label for _, label in reversed(self.trail[1:]))),
            section=self.section,
            values={"form": self},
            status=self.status,
        )

    async def respond(
        self,
        request: PageRequest,
        act: Callable[[], Awaitable[T]],
        *,
        to: Callable[[T], str] | None = None,
    ) -> PageView | Response:
        """Show the form. For a POST, call ``act`` and redirect to the URL that ``to`` returns for the result, or to ``back``.

        If the API refuses the change, the form is shown again with the user's input.
        """
        if request.method != "POST":
            return self.view()
        page = self.filled(request.form)
        try:
            done = await act()
        except ChangedMeanwhile as changed:
            return conflicting(page, changed).view()
        except PageRefused as refused:
            return page.refused(refused).view()
        return see_other(self.back if to is None else to(done))


NEW_ID: Final = FormField(name="id", label="Id", hint="A UUID. Empty: the service makes one.", rare=True)
"""The field for the id in forms that create a record."""


def schema_fields(
    schema: Schema, first: Sequence[str], *, without: Collection[str] = (), **more: Mapping[str, Any]
) -> list[FormField]:
    """Return fields for the members of a body, except its id and ``without``: first ``first``, then all others, folded.

    Kinds, labels and hints follow from the schema. ``more`` has further attributes of a `FormField`, by the member's name. The
    attribute ``value`` is also the default.
    """
    fields: list[FormField] = []
    members = schema["properties"]
    omitted = {*first, *without, "id"}
    for name in [*first, *(name for name in members if name not in omitted)]:
        inner = _first_form(members[name]).get("properties")
        parts = {f"{name}.{part}": one for part, one in inner.items()} if inner else {name: members[name]}
        for part, member in parts.items():
            field = _schema_field(part, member)
            other = {"required": part in schema.get("required", ()), "rare": name not in first, **more.get(part, {})}
            fields.append(dataclasses.replace(field, **other, default=other.get("value", "")))
    return fields


def _schema_field(name: str, schema: Schema) -> FormField:
    plain = _first_form(schema)
    kind = _KINDS.get(plain["type"], "text" if plain.get("maxLength", 0) > _LONGEST_LINE else "line")
    if name.endswith("Secret"):
        kind = "secret"
    words = re.sub("[A-Z]", lambda found: f" {found[0].lower()}", name.replace(".", ": "))
    hint = f"{schema.get('description', '')} {_KIND_HINTS.get(kind, '')}".replace("`", "").strip()
    return FormField(name=name, label=words[0].upper() + words[1:], kind=kind, hint=hint)


def _first_form(schema: Schema) -> Schema:
    """Return the schema, or the first of its alternatives. The further alternatives are null and short forms."""
    return _first_form(schema["anyOf"][0]) if "anyOf" in schema else schema


class ChangedMeanwhile(Exception):
    """Another user has changed the record since the form was shown. ``present`` has the values of the record now."""

    def __init__(self, response: ApiResponse, present: Mapping[str, str]) -> None:
        self.response = response
        self.present = present
        super().__init__("The record was changed meanwhile.")


def _field_of(pointer: str, names: Collection[str]) -> str:
    """Return the name of the field, such as ``label`` or ``parent.member``, for a JSON Pointer into the body."""
    whole = pointer.removeprefix("/").replace("/", ".")
    return whole if whole in names else whole.partition(".")[0]


def read_members(form: Mapping[str, str], fields: Sequence[FormField]) -> dict[str, Any]:
    """Return the sent fields as members of a body. Malformed numbers and JSON stay texts, so that the API refuses them."""
    found: dict[str, Any] = {}
    for one in fields:
        member, _, part = one.name.partition(".")
        if one.kind == "check":
            found[member] = bool(checked(form, one.name))
        elif one.name in form:
            value = _READ.get(one.kind, str)(plain_line_ends(form[one.name]))
            if part:
                found.setdefault(member, {})[part] = value
            else:
                found[member] = value
    return found


def read_given(form: Mapping[str, str], fields: Sequence[FormField]) -> dict[str, Any]:
    """Return the result of `read_members` without empty texts. A new record gets the default of each omitted member."""
    return {name: value for name, value in read_members(form, fields).items() if value != ""}


def plain_line_ends(text: str) -> str:
    """Return a text with LF as its line end. Browsers show CR, LF and CR LF in the same way, and send CR LF for each."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read_lines(text: str) -> list[str]:
    """Return the lines that are not blank, without leading and trailing space."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _read_number(text: str) -> Decimal | str:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return text.strip()
    return number if number.is_finite() else text.strip()


def _read_json(text: str) -> object:
    try:
        return decode(text.encode()) if text.strip() else ""
    except Invalid:
        return text


_READ: Final[Mapping[Kind, Callable[[str], Any]]] = {
    "lines": _read_lines,
    "several": _read_lines,
    "number": _read_number,
    "json": _read_json,
}


def checked(form: Mapping[str, str], name: str) -> str:
    """Return the value of a check box: ``true`` if it is ticked, else empty."""
    return "true" if form.get(name) == "true" else ""


async def save(
    request: PageRequest,
    path: Sequence[str],
    wanted: Mapping[str, Any],
    *,
    values_of: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    query: Mapping[str, str] | None = None,
    exact: bool = False,
) -> ApiResponse:
    """Change the members of ``wanted`` that differ, and return the record before the change.

    The form has a digest of the values that it showed. This digest is compared, not the version of the record, because each
    written entry changes the version of its sink. If-Match prevents a change between the comparison and the save. ``query``:
    the query of the read. ``exact``: the values do not come from a browser, so a difference only in line ends is a change.

    Raises:
        ChangedMeanwhile: another user has changed a value since the form was shown.
        PageRefused: the API responds with an error.
    """
    attempts = 0
    while True:
        attempts += 1
        found = await request.get(*path, **(query or {}))
        present = values_of(found.record)
        if shown_digest(present) != request.form.get(SHOWN, ""):
            raise ChangedMeanwhile(found, texts_of(present))
        is_same: Callable[[object, object], bool] = operator.eq if exact else _is_same
        body = {name: value for name, value in wanted.items() if not is_same(value, present[name])}
        if not body:
            return found
        try:
            await request.send("PATCH", *path, body=body, if_match=found.headers.get("etag", ""))
        except PageRefused as refused:
            if refused.status != 412 or attempts == _ATTEMPTS:
                raise
        else:
            return found


def _is_same(value: object, present: object) -> bool:
    """Return whether a member equals the stored value. Lists are compared by line, because an item may have several lines."""
    if isinstance(value, list) and isinstance(present, list):
        return value == _read_lines(as_text(present))
    if isinstance(value, str) and isinstance(present, str):
        return value == present or value == plain_line_ends(present)
    return value == present


def texts_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each form field for a record. The field for a member of an object has a name with a dot."""
    texts = {name: as_text(value) for name, value in values.items() if not isinstance(value, Mapping)}
    for name, value in values.items():
        if isinstance(value, Mapping):
            texts |= {f"{name}.{part}": as_text(inner) for part, inner in value.items()}
    return texts


def with_values(fields: Sequence[FormField], values: Mapping[str, Any]) -> list[FormField]:
    """Return the fields with the values of a record."""
    texts = texts_of(values)
    return [dataclasses.replace(one, value=texts.get(one.name, "")) for one in fields]


def as_text(value: object) -> str:
    """Return the value of a member as the text of its field."""
    if isinstance(value, Mapping):
        return encode(value).decode()
    if isinstance(value, bool):
        return "true" if value else ""
    if isinstance(value, list):
        return "\n".join(str(item) for item in value)
    return "" if value is None else str(value)


def conflicting(page: FormPage, changed: ChangedMeanwhile) -> FormPage:
    """Return the page with the user's values, and with the present values that differ from them."""
    fields = [
        dataclasses.replace(one, present=present)
        if (present := changed.present.get(one.name)) is not None and present != one.value
        else one
        for one in page.fields
    ]
    record = changed.response.record
    by = record.get("updatedBy") or "another user"
    at = str(record["updatedAt"])
    return dataclasses.replace(
        page,
        fields=fields,
        problem=f"{by} changed this at {at[:10]} {at[11:19]} UTC, after you opened the form. Your input was not saved. "
        "The present values are shown below. Save again to replace them with your values.",
        status=409,
    )
