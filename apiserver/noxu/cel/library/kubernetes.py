"""The types that Kubernetes adds: quantities, semantic versions, and the authorizer of admission.

    quantity('1.5Gi').isGreaterThan(quantity('1G'))
    semver('1.2.3').isLessThan(semver('2.0.0'))          as github.com/blang/semver/v4 reads them, error messages included
    authorizer.group('apps').resource('deployments').namespace('x').check('get').allowed()

Each call on an authorizer but the last adds an attribute to a question; `check` adds the verb and asks. This module
only builds the questions: the function behind the `authorizer` variable decides them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from noxu.api.names import dns1123_label, dns1123_subdomain
from noxu.cel.errors import CelError, no_such_overload
from noxu.cel.library.declarations import Overload, overload
from noxu.cel.memory import allocate, allocate_text
from noxu.cel.types.types import AUTHORIZER, DECISION, GROUP_CHECK, PATH_CHECK, QUANTITY, RESOURCE_CHECK, SEMVER, Type
from noxu.cel.values.numbers import MAX_UINT64
from noxu.cel.values.values import Opaque, Value
from noxu.go import quantity as go_quantity
from noxu.go.text import quote


class QuantityValue(Opaque):
    """`computed`: a result of add or sub. Upstream cannot compare such a quantity if it is on the right side of `==`."""

    __slots__ = ("amount", "computed")
    type = QUANTITY

    def __init__(self, amount: go_quantity.Quantity, computed: bool = False) -> None:
        self.amount = amount
        self.computed = computed

    def equals(self, other: Value) -> bool:
        if not isinstance(other, QuantityValue) or other.computed:
            raise no_such_overload()
        return compare_quantities(self, other) == 0

    def __str__(self) -> str:
        return str(self.amount)


def parse_quantity(text: str) -> QuantityValue:
    try:
        return QuantityValue(go_quantity.parse(text))
    except ValueError as error:
        raise CelError(str(error)) from None


def is_quantity(text: str) -> bool:
    try:
        go_quantity.parse(text)
    except ValueError:
        return False
    return True


def compare_quantities(left: QuantityValue, right: QuantityValue) -> int:
    _announce(left.amount, right.amount)
    return go_quantity.compare(left.amount, right.amount)


def as_integer(quantity: QuantityValue) -> int:
    value = go_quantity.as_int64(quantity.amount)
    if value is None:
        raise CelError("cannot convert value to integer")
    return value


_LONG: Final = 128  # bits of two quantities and what aligns them
_MAX_ALIGNMENT: Final = 400_000  # bits; quantities that are further apart are not aligned


def _announce(left: go_quantity.Quantity, right: go_quantity.Quantity) -> None:
    """Announce what two quantities take when they are aligned: 1e99999 + 1 has 100,000 digits."""
    exponents = abs(left.exponent - right.exponent)
    bits = left.digits.bit_length() + right.digits.bit_length() + min(4 * exponents, _MAX_ALIGNMENT)
    if bits > _LONG:
        allocate(bits // 4)


_Operation = Callable[[go_quantity.Quantity, go_quantity.Quantity], go_quantity.Quantity]


def _arithmetic(operation: _Operation) -> Callable[[QuantityValue, QuantityValue | int], QuantityValue]:
    def run(left: QuantityValue, right: QuantityValue | int) -> QuantityValue:
        amount = go_quantity.Quantity(right) if isinstance(right, int) else right.amount
        _announce(left.amount, amount)
        try:
            return QuantityValue(operation(left.amount, amount), computed=True)
        except ValueError as error:
            raise CelError(str(error)) from None

    return run


_add: Final = _arithmetic(go_quantity.add)
_subtract: Final = _arithmetic(go_quantity.subtract)

QUANTITIES: Final[list[tuple[str, Overload]]] = [
    overload("string_to_quantity", "quantity(string) -> quantity", parse_quantity),
    overload("is_quantity_string", "isQuantity(string) -> bool", is_quantity),
    overload("quantity_sign", "sign(quantity) -> int", lambda quantity: go_quantity.sign(quantity.amount)),
    overload(
        "quantity_is_greater_than",
        "quantity.isGreaterThan(quantity) -> bool",
        lambda a, b: compare_quantities(a, b) == 1,
    ),
    overload(
        "quantity_is_less_than", "quantity.isLessThan(quantity) -> bool", lambda a, b: compare_quantities(a, b) == -1
    ),
    overload("quantity_compare_to", "quantity.compareTo(quantity) -> int", compare_quantities),
    overload(
        "quantity_get_float",
        "quantity.asApproximateFloat() -> double",
        lambda quantity: go_quantity.approximate_float(quantity.amount),
    ),
    overload("quantity_get_int", "quantity.asInteger() -> int", as_integer),
    overload(
        "quantity_is_integer",
        "quantity.isInteger() -> bool",
        lambda quantity: go_quantity.as_int64(quantity.amount) is not None,
    ),
    overload("quantity_add", "quantity.add(quantity) -> quantity", _add),
    overload("quantity_add_int", "quantity.add(int) -> quantity", _add),
    overload("quantity_sub", "quantity.sub(quantity) -> quantity", _subtract),
    overload("quantity_sub_int", "quantity.sub(int) -> quantity", _subtract),
]


_NUMBERS: Final = re.compile("[0-9]*")
_PART: Final = 160  # bytes of a part of a prerelease
_WORDS: Final = re.compile("[0-9A-Za-z-]*")


class Version(Opaque):
    """`1.2.3-rc.1+build`.

    A part of `prerelease` is (False, number) or (True, word), so that numbers sort before words: rc.1 is
    [(True, "rc"), (False, 1)].
    """

    __slots__ = ("build", "numbers", "prerelease")
    type = SEMVER

    def __init__(self, numbers: tuple[int, int, int], prerelease: list[tuple[bool, Value]], build: str) -> None:
        self.numbers = numbers
        self.prerelease = prerelease
        self.build = build

    @property
    def order(self) -> tuple[object, ...]:
        """The sort key. A release is later than its prereleases; build metadata does not count."""
        return (*self.numbers, not self.prerelease, self.prerelease)

    def equals(self, other: Value) -> bool:
        if not isinstance(other, Version):
            raise no_such_overload()
        return self.order == other.order

    def __str__(self) -> str:
        text = ".".join(map(str, self.numbers))
        if self.prerelease:
            text += "-" + ".".join(str(part) for _, part in self.prerelease)
        return f"{text}+{self.build}" if self.build else text


def _number(text: str, name: str) -> int:
    if not _NUMBERS.fullmatch(text):
        raise ValueError(f"Invalid character(s) found in {name} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise ValueError(f"{name.capitalize()} number must not contain leading zeroes {quote(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    if not text:
        raise ValueError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > MAX_UINT64:
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def _prerelease(text: str) -> tuple[bool, Value]:
    if not text:
        raise ValueError("Prerelease is empty")
    if _NUMBERS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise ValueError(f"Numeric PreRelease version must not contain leading zeroes {quote(text)}")
        return False, _unsigned(text)
    if not _WORDS.fullmatch(text):
        raise ValueError(f"Invalid character(s) found in prerelease {quote(text)}")
    return True, text


def parse_version(text: str) -> Version:
    """semver.Parse. Raises ValueError with the library's message.

    1.2.3-rc.1+b.5   →   at the first two dots: 1, 2, rest 3-rc.1+b.5; at "+": build b.5; at "-": patch 3, rc.1
    """
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "major"), _number(parts[1], "minor")
    rest, plus, build = parts[2].partition("+")
    patch, dash, prerelease = rest.partition("-")
    number = _number(patch, "patch")
    prerelease_parts = [_prerelease(part) for part in prerelease.split(".")] if dash else []
    for part in build.split(".") if plus else ():
        if not part:
            raise ValueError("Build meta data is empty")
        if not _WORDS.fullmatch(part):
            raise ValueError(f"Invalid character(s) found in build meta data {quote(part)}")
    return Version((major, minor, number), prerelease_parts, build)


def parse_normalized_version(text: str) -> Version:
    """Like `parse`, but a leading v, leading zeros and missing numbers are allowed: v01.2 → 1.2.0."""
    parts = text.removeprefix("v").split(".", 2)
    for position, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[position] = stripped if stripped[:1].isascii() and stripped[:1].isdigit() else f"0{stripped}"
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parse_version(".".join(parts))


def read_version(text: str, normalize: bool = False) -> Version:
    allocate_text(len(text), text)
    allocate(_PART * text.count("."))
    try:
        return parse_normalized_version(text) if normalize else parse_version(text)
    except ValueError as error:
        raise CelError(str(error)) from None


def is_version(text: str, normalize: bool = False) -> bool:
    try:
        read_version(text, normalize)
    except CelError:
        return False
    return True


def compare_versions(left: Version, right: Version) -> int:
    a, b = left.order, right.order
    return (a > b) - (a < b)


SEMVERS: Final[list[tuple[str, Overload]]] = [
    overload("string_to_semver", "semver(string) -> semver", read_version),
    overload("string_bool_to_semver", "semver(string, bool) -> semver", read_version),
    overload("is_semver_string", "isSemver(string) -> bool", is_version),
    overload("is_semver_string_bool", "isSemver(string, bool) -> bool", is_version),
    overload(
        "semver_is_greater_than", "semver.isGreaterThan(semver) -> bool", lambda a, b: compare_versions(a, b) == 1
    ),
    overload("semver_is_less_than", "semver.isLessThan(semver) -> bool", lambda a, b: compare_versions(a, b) == -1),
    overload("semver_compare_to", "semver.compareTo(semver) -> int", compare_versions),
    overload("semver_major", "semver.major() -> int", lambda version: version.numbers[0]),
    overload("semver_minor", "semver.minor() -> int", lambda version: version.numbers[1]),
    overload("semver_patch", "semver.patch() -> int", lambda version: version.numbers[2]),
]


class AuthorizerDecision(NamedTuple):
    """The answer to a question. `error` is set if it could not be decided."""

    allowed: bool
    reason: str = ""
    error: str = ""


Authorize: TypeAlias = Callable[[Mapping[str, str]], AuthorizerDecision]
"""Answers a question, given its attributes.

They are `verb`; `user` for another service account; `path`, or `group`, `resource`, `subresource`, `namespace`, `name`,
`fieldSelector` and `labelSelector`. Attributes that the expression does not give are missing.
"""


class _Question(Opaque):
    """An authorizer or a check: the attributes of a question so far."""

    __slots__ = ("attributes", "authorize", "type")

    def __init__(self, kind: Type, authorize: Authorize, attributes: Mapping[str, str]) -> None:
        self.type = kind
        self.authorize = authorize
        self.attributes = attributes

    def equals(self, other: Value) -> bool:
        raise no_such_overload()  # not even to itself

    def with_attributes(self, kind: Type, **added: str) -> _Question:
        return _Question(kind, self.authorize, {**self.attributes, **added})


class Authorizer(_Question):
    """The value of the variable `authorizer`."""

    __slots__ = ()

    def __init__(self, authorize: Authorize) -> None:
        super().__init__(AUTHORIZER, authorize, {})


def resource_check(
    authorize: Authorize, group: str, resource: str, subresource: str, namespace: str, name: str
) -> Value:
    """The value of `authorizer.group(…).resource(…)…`: questions about one object."""
    attributes = {
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    return _Question(RESOURCE_CHECK, authorize, attributes)


class _Decision(Opaque):
    __slots__ = ("decision",)
    type = DECISION

    def __init__(self, decision: AuthorizerDecision) -> None:
        self.decision = decision

    def equals(self, other: Value) -> bool:
        raise no_such_overload()


def _with(kind: Type, attribute: str) -> Callable[[_Question, str], _Question]:
    return lambda question, value: question.with_attributes(kind, **{attribute: value})


def _check(question: _Question, verb: str) -> _Decision:
    return _Decision(question.authorize({**question.attributes, "verb": verb}))


def _service_account(question: _Question, namespace: str, name: str) -> _Question:
    if dns1123_subdomain(name):
        raise CelError("Invalid service account name")
    if dns1123_label(namespace):
        raise CelError("Invalid service account namespace")
    return question.with_attributes(AUTHORIZER, user=f"system:serviceaccount:{namespace}:{name}")


AUTHORIZATION: Final[list[tuple[str, Overload]]] = [
    overload("authorizer_path", "authorizer.path(string) -> pathcheck", _with(PATH_CHECK, "path")),
    overload("authorizer_group", "authorizer.group(string) -> groupcheck", _with(GROUP_CHECK, "group")),
    overload("authorizer_serviceaccount", "authorizer.serviceAccount(string, string) -> authorizer", _service_account),
    overload("groupcheck_resource", "groupcheck.resource(string) -> resourcecheck", _with(RESOURCE_CHECK, "resource")),
    overload(
        "resourcecheck_subresource",
        "resourcecheck.subresource(string) -> resourcecheck",
        _with(RESOURCE_CHECK, "subresource"),
    ),
    overload(
        "resourcecheck_namespace",
        "resourcecheck.namespace(string) -> resourcecheck",
        _with(RESOURCE_CHECK, "namespace"),
    ),
    overload("resourcecheck_name", "resourcecheck.name(string) -> resourcecheck", _with(RESOURCE_CHECK, "name")),
    overload("pathcheck_check", "pathcheck.check(string) -> decision", _check),
    overload("resourcecheck_check", "resourcecheck.check(string) -> decision", _check),
    overload("decision_errored", "decision.errored() -> bool", lambda value: bool(value.decision.error)),
    overload("decision_error", "decision.error() -> string", lambda value: value.decision.error),
    overload("decision_allowed", "decision.allowed() -> bool", lambda value: value.decision.allowed),
    overload("decision_reason", "decision.reason() -> string", lambda value: value.decision.reason),
    overload(
        "authorizer_fieldselector",
        "resourcecheck.fieldSelector(string) -> resourcecheck",
        _with(RESOURCE_CHECK, "fieldSelector"),
    ),
    overload(
        "authorizer_labelselector",
        "resourcecheck.labelSelector(string) -> resourcecheck",
        _with(RESOURCE_CHECK, "labelSelector"),
    ),
]
