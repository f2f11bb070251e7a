"""Forms: their fields, the errors of the API beside them, and the save that does not overwrite another user's change.

A field has the name of the API's member, so that the pointer of a mistake names the field.
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
"""The hidden field with the digest of the values that the form began with."""
_ATTEMPTS: Final = 5
_KINDS: Final[Mapping[str, Kind]] = {"boolean": "check", "number": "number", "array": "lines", "object": "json"}
_KIND_HINTS: Final[Mapping[str, str]] = {
    "lines": "One on each line.",
    "json": "An object as JSON.",
    "secret": "Empty: the stored secret stays.",
}
_LONGEST_LINE: Final = 4_096
"""Members that may be longer than this have an input of several lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """A field. ``present``: the stored value, if it differs from the value at the beginning of the form.

    ``longest`` None: the service checks the length alone. ``options``: the values and labels of a choice.
    If several may be chosen, the value has one choice on each line, as the kind ``lines``. A secret is typed, and never shown.
    A name with a dot is the path of an object's member. Fields that are ``rare`` are folded, unless one has an error or another
    value than ``default``.
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
        """Return whether the user has to see the field, also if it is rare."""
        return bool(self.error) or self.present is not None or self.value != self.default


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPage:
    """A page with one form, which is sent to the page's own URL. ``sentences`` are shown between the heading and the form.

    ``trail``: the links above it; the last one is the page to go back to. The button of a dangerous form has the words of the
    title.
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
        """The URL of the page to which the form leads."""
        return self.trail[-1][0]

    def filled(self, form: Mapping[str, str]) -> FormPage:
        """Return the form with what its user has typed."""
        fields = [
            dataclasses.replace(one, value=form.get(one.name, "") if one.kind != "check" else checked(form, one.name))
            for one in self.fields
        ]
        return dataclasses.replace(self, fields=fields)

    def refused(self, refused: PageRefused) -> FormPage:
        """Return the form with the API's sentences, each beside its field, or above all fields."""
        names = {one.name for one in self.fields}
        by_name = {_field_of(pointer, names): detail for pointer, detail in refused.mistakes}
        fields = [dataclasses.replace(one, error=by_name.pop(one.name, "")) for one in self.fields]
        others = " ".join(by_name.values()) if refused.mistakes else refused.sentence
        return dataclasses.replace(self, fields=fields, problem=others, status=refused.status)

    def view(self) -> PageView:
        """Return the page."""
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
        """Show the form; if it was sent, call ``act`` and go to the URL that ``to`` returns for its response, or to ``back``.

        If the API refuses it, the form is shown again with what its user has typed.
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
"""A field of the forms that create a record; an empty id is none."""


def schema_fields(
    schema: Schema, first: Sequence[str], *, without: Collection[str] = (), **more: Mapping[str, Any]
) -> list[FormField]:
    """Return a field for each member of a body but its id: first the members ``first``, then the remaining members, folded.

    Kinds, labels and hints follow from the schema. ``more``: further fields of `FormField`, by the name of the member. A value
    there is the default.
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
    """Return the schema, or its first alternative: further alternatives are null and short forms."""
    return _first_form(schema["anyOf"][0]) if "anyOf" in schema else schema


class ChangedMeanwhile(Exception):
    """The record has other values than the form began with; ``present`` are its values now."""

    def __init__(self, response: ApiResponse, present: Mapping[str, str]) -> None:
        self.response = response
        self.present = present
        super().__init__("The record was changed meanwhile.")


def _field_of(pointer: str, names: Collection[str]) -> str:
    """Return the name of the field for a member of the body, such as ``label`` or ``parent.member``."""
    whole = pointer.removeprefix("/").replace("/", ".")
    return whole if whole in names else whole.partition(".")[0]


def read_members(form: Mapping[str, str], fields: Sequence[FormField]) -> dict[str, Any]:
    """Return the sent fields as members of a body. A malformed number or malformed JSON stays a text, which the API refuses."""
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
    """Return the members of `read_members` without empty texts, for a record that then has the defaults."""
    return {name: value for name, value in read_members(form, fields).items() if value != ""}


def plain_line_ends(text: str) -> str:
    """Return a text with LF at the end of each line. Browsers show every line end in the same way, and send CR LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read_lines(text: str) -> list[str]:
    """Return the lines that are not blank, without space around them."""
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
    """Return whether a box is ticked, as the value of its field: ``true`` or empty."""
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
    """Change the members of ``wanted`` that differ, unless the record was changed since its form was shown.

    The values of the form are compared, not the version of the record, because each written entry changes the version of its
    sink. If-Match covers the time between the comparison and the change. Return the record before the change. ``query``: the
    query of the read. ``exact``: the values do not come from a browser's form, so different line ends are different values.

    Raises:
        ChangedMeanwhile: another user has changed a value of the form.
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
    """Return whether a member equals the stored value. A line break in an item of a list begins a line in its field."""
    if isinstance(value, list) and isinstance(present, list):
        return value == _read_lines(as_text(present))
    if isinstance(value, str) and isinstance(present, str):
        return value == present or value == plain_line_ends(present)
    return value == present


def texts_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of the fields of members of a record, also of those with a dot."""
    texts = {name: as_text(value) for name, value in values.items() if not isinstance(value, Mapping)}
    for name, value in values.items():
        if isinstance(value, Mapping):
            texts |= {f"{name}.{part}": as_text(inner) for part, inner in value.items()}
    return texts


def with_values(fields: Sequence[FormField], values: Mapping[str, Any]) -> list[FormField]:
    """Return the fields with members of a record."""
    texts = texts_of(values)
    return [dataclasses.replace(one, value=texts.get(one.name, "")) for one in fields]


def as_text(value: object) -> str:
    """Return a member of a record as the text of its field."""
    if isinstance(value, Mapping):
        return encode(value).decode()
    if isinstance(value, bool):
        return "true" if value else ""
    if isinstance(value, list):
        return "\n".join(str(item) for item in value)
    return "" if value is None else str(value)


def conflicting(page: FormPage, changed: ChangedMeanwhile) -> FormPage:
    """Return the form again, with the user's values and the present values beside them."""
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
