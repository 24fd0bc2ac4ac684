"""The checks that fields of many kinds share: signs, ranges, names of ports, addresses, paths, conditions, selectors.

The texts are those of k8s.io/apimachinery: pkg/util/validation, pkg/api/validation and meta/v1/validation; for paths of
files in pods, those of pkg/apis/core/validation: relative, without a way up, inside a volume. Every check yields the
errors of one value, and none for an absent value (None).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from functools import cache
from typing import Final, TypeAlias

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import NameRule, dns1123_label, dns1123_subdomain, label_value, qualified_name
from noxu.expressions import expression
from noxu.go.net import Addr, is_ipv4, is_ipv6, parse_addr
from noxu.go.structs import decode
from noxu.kinds import facts
from noxu.values import Json, Object, equal

Errors: TypeAlias = Iterator[FieldError]

NEGATIVE: Final = "must be greater than or equal to 0"
NOT_POSITIVE: Final = "must be greater than zero"
IMMUTABLE: Final = "field is immutable"
MAX_INT32: Final = 2**31 - 1

_is_env_name: Final = expression("[ -<>-~]+")
_NOT_AN_ENV_NAME: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)
_is_key: Final = expression("[-._a-zA-Z0-9]+")
_NOT_A_KEY: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_is_percentage: Final = expression("[0-9]+%")
_NOT_A_PERCENTAGE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_has_port_characters: Final = expression("[-a-z0-9]+")
_has_letter: Final = expression("[a-z]")


def struct_json(key: str, value: Json) -> Json:
    """A struct in a message, its fields in the order of declaration: `core/v1.Toleration`. None is printed as null.

    Upstream prints the internal version of most structs; here it is the version that clients know.
    """
    return None if value is None else as_json(decode(facts.struct(key), value).value)


def nonnegative(value: int | None, path: Path) -> Errors:
    if value is not None and value < 0:
        yield field.invalid(path, value, NEGATIVE)


def in_range(value: int, lowest: int, highest: int, path: Path) -> Errors:
    if not lowest <= value <= highest:
        yield field.invalid(path, value, f"must be between {lowest} and {highest}, inclusive")


def immutable(new: Json, old: Json, path: Path, struct: str = "") -> Errors:
    """`struct` is the type of the value if it is one, as `struct_json` takes it."""
    if not equal(new, old):
        yield field.invalid(path, struct_json(struct, new) if struct else new, IMMUTABLE)


def label(name: str, path: Path) -> Errors:
    """A DNS label."""
    return (field.invalid(path, name, text) for text in dns1123_label(name))


def csi_driver_name(name: str, path: Path) -> Errors:
    """A subdomain in any case, of at most 63 characters (ValidateCSIDriverName)."""
    if not name:
        yield field.required(path)
    if len(name) > 63:
        yield field.too_long(path, 63)
    yield from (field.invalid(path, name, text) for text in dns1123_subdomain(name.lower()))


def named(name: str, rule: NameRule, path: Path, *, prefix: bool = False) -> Errors:
    """The name of an object of a kind."""
    return (field.invalid(path, name, text) for text in rule(name, prefix))


def qualified(name: str, path: Path) -> Errors:
    return (field.invalid(path, name, text) for text in qualified_name(name))


def labels(values: dict[str, str] | None, path: Path) -> Errors:
    for name, value in (values or {}).items():
        yield from qualified(name, path)
        for text in label_value(value):
            yield field.invalid(path, value, text)


def key(name: str, path: Path) -> Errors:
    """The key of a ConfigMap or Secret."""
    if len(name.encode("utf-8", "surrogatepass")) > 253:
        yield field.invalid(path, name, "must be no more than 253 characters")
    if not _is_key.fullmatch(name):
        yield field.invalid(path, name, _NOT_A_KEY)
    if name in (".", ".."):
        yield field.invalid(path, name, f"must not be '{name}'")
    elif name.startswith(".."):
        yield field.invalid(path, name, "must not start with '..'")


def env_name(name: str, path: Path) -> Errors:
    """The name of an environment variable, which is not empty."""
    if not _is_env_name.fullmatch(name):
        yield field.invalid(path, name, _NOT_AN_ENV_NAME)


def port_number(port: int, path: Path) -> Errors:
    return in_range(port, 1, 65535, path)


def port_name_texts(name: str) -> list[str]:
    """The texts of errors in the name of a port of a container (IsValidPortName)."""
    texts = []
    if len(name.encode("utf-8", "surrogatepass")) > 15:
        texts.append("must be no more than 15 characters")
    if not _has_port_characters.fullmatch(name):
        texts.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter.search(name):
        texts.append("must contain at least one letter (a-z)")
    if "--" in name:
        texts.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        texts.append("must not begin or end with a hyphen")
    return texts


def port(value: int | str, path: Path) -> Errors:
    """The number or the name of a port."""
    if isinstance(value, int):
        yield from port_number(value, path)
    else:
        for text in port_name_texts(value):
            yield field.invalid(path, value, text)


def parsed_percentage(value: int | str | None) -> int | None:
    """`25%` is 25; None if it is no percentage."""
    return int(value[:-1][:18]) if isinstance(value, str) and _is_percentage.fullmatch(value) else None


def int_or_percentage(value: int | str, path: Path) -> Errors:
    if isinstance(value, int):
        yield from nonnegative(value, path)
    elif not _is_percentage.fullmatch(value):
        yield field.invalid(path, value, _NOT_A_PERCENTAGE)


def address(text: str, path: Path, accepted: Container[str] = ()) -> Errors:
    """An IP address in a field that is older than strict validation. `accepted` are those of the stored object."""
    if text in accepted:
        return
    if not (is_ipv4(text, sloppy=True) or is_ipv6(text, sloppy=True)):
        rule = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        yield field.invalid(path, text, rule)
        return
    addr = _addr(text)
    if addr is None:
        yield field.invalid(path, text, "must not have leading 0s")
    elif addr.is_4in6:
        yield field.invalid(path, text, "must not be an IPv4-mapped IPv6 address")


def _addr(text: str) -> Addr | None:
    try:
        return parse_addr(text)
    except ValueError:
        return None


@cache
def choices(type_: str, *, declared: bool = False) -> list[str]:
    """The values of a type such as `core/v1.PullPolicy`, sorted unless they are listed as declared."""
    part, _, name = type_.rpartition(".")
    type_facts = facts.types(part)[name]
    values: list[str] = type_facts.get("enum") or type_facts["values"]
    return list(values) if declared else sorted(values)


def choice(value: str | None, type_: str, path: Path, *, declared: bool = False) -> Errors:
    """One of the values of a type."""
    if value is not None and value not in choices(type_, declared=declared):
        yield field.not_supported(path, as_json(value), choices(type_, declared=declared))


def required_choice(value: str | None, type_: str, path: Path, *, declared: bool = False) -> Errors:
    """One of the values of a type; an empty one is missing."""
    if not value:
        yield field.required(path)
    else:
        yield from choice(value, type_, path, declared=declared)


STANDARD_FINALIZERS: Final = ("kubernetes", "foregroundDeletion", "orphan")


def finalizers(metadata: Object) -> Errors:
    """Finalizers without a prefix must be standard ones, for kinds that core/validation validates."""
    for n, name in enumerate(metadata.get("finalizers") or ()):
        if "/" not in name and name not in STANDARD_FINALIZERS:
            rule = "name is neither a standard finalizer name nor is it fully qualified"
            yield field.invalid(field.index("metadata.finalizers", n), name, rule)


def each(values: list[Json] | None, path: Path, check: Callable[[Json, Path], Errors]) -> Errors:
    """The errors of every item of a list."""
    for n, value in enumerate(values or ()):
        yield from check(value, f"{path}[{n}]")


# -- paths ------------------------------------------------------------------------------------------------------------


def no_backsteps(text: str, path: Path) -> Errors:
    """No element is `..`."""
    if ".." in text and ".." in text.split("/"):
        yield field.invalid(path, text, "must not contain '..'")


def descending(text: str, path: Path) -> Errors:
    """Relative, and below the directory where it begins."""
    if text.startswith("/"):
        yield field.invalid(path, text, "must be a relative path")
    yield from no_backsteps(text, path)


def not_reserved(text: str, path: Path) -> Errors:
    """Descending, and not with the prefix of the files of atomic updates."""
    yield from descending(text, path)
    if text.startswith("..") and not text.startswith("../"):
        yield field.invalid(path, text, "must not start with '..'")


# -- conditions -------------------------------------------------------------------------------------------------------


_STATUSES: Final = ["False", "True", "Unknown"]
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_is_reason: Final = re.compile(_REASON).fullmatch
_NOT_A_REASON: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters "
    "or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or "
    f"'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_REASON}')"
)
_MAX_REASON: Final = 1024
_MAX_MESSAGE: Final = 32 * 1024


def errors(conditions: list[Object] | None, path: Path) -> Errors:
    seen = set()
    for n, condition in enumerate(conditions or ()):
        where, kind = f"{path}[{n}]", condition.get("type", "")
        if kind in seen:
            yield field.duplicate(f"{where}.type", kind)
        seen.add(kind)
        yield from _errors(condition, where)


def _errors(condition: Object, path: Path) -> Errors:
    yield from qualified(condition.get("type", ""), f"{path}.type")
    if condition.get("status", "") not in _STATUSES:
        yield field.not_supported(f"{path}.status", as_json(condition.get("status", "")), _STATUSES)
    yield from nonnegative(condition.get("observedGeneration"), f"{path}.observedGeneration")
    if not condition.get("lastTransitionTime"):
        yield field.required(f"{path}.lastTransitionTime")
    reason, message = condition.get("reason", ""), condition.get("message", "")
    if not reason:
        yield field.required(f"{path}.reason")
    else:
        if not _is_reason(reason):
            yield field.invalid(f"{path}.reason", reason, _NOT_A_REASON)
        if len(reason) > _MAX_REASON:
            yield field.too_long(f"{path}.reason", _MAX_REASON)
    if len(message.encode("utf-8", "replace")) > _MAX_MESSAGE:
        yield field.too_long(f"{path}.message", _MAX_MESSAGE)


# -- selectors --------------------------------------------------------------------------------------------------------


_WITH_VALUES: Final = ("In", "NotIn")
_WITHOUT_VALUES: Final = ("Exists", "DoesNotExist")


_OPERATORS: Final = {"In": " in ({})", "NotIn": " notin ({})", "Exists": "", "DoesNotExist": ""}


def selector_text(selector: Object) -> str:
    """A label selector as text, sorted by key (LabelSelectorAsSelector, and the String method of its result)."""
    terms = [(name, f"{name}={value}") for name, value in (selector.get("matchLabels") or {}).items()]
    for requirement in selector.get("matchExpressions") or ():
        name, operator = requirement.get("key", ""), requirement.get("operator", "")
        values = ",".join(sorted(requirement.get("values") or ()))
        negation = "!" if operator == "DoesNotExist" else ""
        terms.append((name, f"{negation}{name}{_OPERATORS.get(operator, '').format(values)}"))
    return ",".join(text for _, text in sorted(terms, key=lambda term: term[0]))


def label_selector_errors(selector: Object, path: Path, *, any_value: bool = False) -> list[FieldError]:
    """The errors in a label selector. `any_value`: the stored object has invalid values, too (see kubernetes#99139)."""
    errors = []
    where = field.child(path, "matchLabels")
    for name, value in sorted((selector.get("matchLabels") or {}).items()):
        errors += [field.invalid(where, name, text) for text in qualified_name(name)]
        errors += [field.invalid(where, value, text) for text in label_value(value)]
    for n, requirement in enumerate(selector.get("matchExpressions") or ()):
        where = field.index(field.child(path, "matchExpressions"), n)
        errors += label_requirement_errors(requirement, where, any_value=any_value)
    return errors


def label_requirement_errors(
    requirement: Object, path: Path, *, any_operator: bool = False, any_value: bool = False
) -> list[FieldError]:
    errors = _operator_errors(requirement, path, any_operator=any_operator)
    name = requirement.get("key", "")
    errors += [field.invalid(field.child(path, "key"), name, text) for text in qualified_name(name)]
    if not any_value:
        for n, value in enumerate(requirement.get("values") or ()):
            where = field.index(field.child(path, "values"), n)
            errors += [field.invalid(where, value, text) for text in label_value(value)]
    return errors


def field_requirement_errors(requirement: Object, path: Path, *, any_operator: bool = False) -> list[FieldError]:
    missing = [] if requirement.get("key") else [field.required(field.child(path, "key"), "must be specified")]
    return missing + _operator_errors(requirement, path, any_operator=any_operator)


def _operator_errors(requirement: Object, path: Path, *, any_operator: bool) -> list[FieldError]:
    operator, values = requirement.get("operator", ""), requirement.get("values")
    where = field.child(path, "values")
    if operator in _WITH_VALUES:
        rule = "must be specified when `operator` is 'In' or 'NotIn'"
        return [] if values else [field.required(where, rule)]
    if operator in _WITHOUT_VALUES:
        rule = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [field.forbidden(where, rule)] if values else []
    if any_operator:
        return []
    return [field.invalid(field.child(path, "operator"), as_json(operator), "not a valid selector operator")]
