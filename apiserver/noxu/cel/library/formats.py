"""Kubernetes' named formats: `format.dns1123Label().validate(text)`, `format.named('uuid')`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from noxu.api import names
from noxu.cel.errors import no_such_overload
from noxu.cel.library.declarations import Overload, overload
from noxu.cel.types.types import FORMAT
from noxu.cel.values.values import NONE, Opaque, Optional, Value
from noxu.go import url as go_url
from noxu.schema import formats


class Format(Opaque):
    """`find_errors` returns what is wrong with a text. `pattern_size` is the length of a pattern that would cost as much."""

    __slots__ = ("find_errors", "name", "pattern_size")
    type = FORMAT

    def __init__(self, name: str, find_errors: Callable[[str], list[str]], pattern_size: int) -> None:
        self.name = name
        self.find_errors = find_errors
        self.pattern_size = pattern_size

    def equals(self, other: Value) -> bool:
        if not isinstance(other, Format):
            raise no_such_overload()
        return self.name == other.name


def _uri(text: str) -> list[str]:
    try:
        go_url.parse_request_uri(text)
    except ValueError as error:
        return [str(error)]
    return []


def _schema_format(name: str, message: str) -> Callable[[str], list[str]]:
    """A format of schemas, which has one error."""

    def check(text: str) -> list[str]:
        is_valid = formats.checker(name)
        assert is_valid is not None
        return [] if is_valid(text) else [message]

    return check


NAMED: Final[dict[str, Format]] = {
    "dns1123Label": Format("DNS1123Label", names.label_name, 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", names.subdomain_name, 60),
    "dns1035Label": Format("DNS1035Label", names.label_1035_name, 30),
    "qualifiedName": Format("QualifiedName", names.qualified_name, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", partial(names.label_name, prefix=True), 30),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", partial(names.subdomain_name, prefix=True), 60),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", partial(names.label_1035_name, prefix=True), 30),
    "labelValue": Format("LabelValue", names.label_value, 40),
    "uri": Format("URI", _uri, 1103),
    "uuid": Format("uuid", _schema_format("uuid", "does not match the UUID format"), 70),
    "byte": Format("byte", _schema_format("byte", "invalid base64"), 84),
    "date": Format("date", _schema_format("date", "invalid date"), 71),
    "datetime": Format("datetime", _schema_format("datetime", "invalid datetime"), 71),
}


def validate(format_: Format, text: str) -> Optional:
    errors = format_.find_errors(text)
    return Optional(errors) if errors else NONE


def named(name: str) -> Optional:
    found = NAMED.get(name)
    return NONE if found is None else Optional(found)


def _constant(name: str) -> tuple[str, Overload]:
    return overload(f"format.{name}", f"format::{name}() -> format", lambda: NAMED[name])


OVERLOADS: Final[list[tuple[str, Overload]]] = [
    overload("format-validate", "format.validate(string) -> optional(list(string))", validate),
    overload("format-named", "format::named(string) -> optional(format)", named),
    *map(_constant, NAMED),
]
