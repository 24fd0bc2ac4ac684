"""CEL by release: which functions and macros the expressions of a CRD or policy may use, and how their costs are estimated.

From pkg/cel/environment/base.go and pkg/cel/library of k8s.io/apiserver. Upstream gives each library a version in which it
was introduced. An expression that is already stored may use everything that the server knows, so that one server can be
newer than another. A new one may use what the release before knows, too: with `cidr` of 1.30, a new rule is accepted from
1.31 on. A library behind a gate is an exception, and so is one that comes with cel-go without a version.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Library(NamedTuple):
    """Functions that came later than the oldest release, and the releases from which expressions may use them.

    `functions` are those that consist of it alone, `overloads` the ids of what it adds to functions of others. `macros`
    have a name and numbers of arguments.
    """

    name: str
    stored: int
    new: int
    functions: tuple[str, ...] = ()
    overloads: tuple[str, ...] = ()
    macros: tuple[tuple[str, tuple[int, ...]], ...] = ()


_LATER_STRINGS: Final = ("format", "strings.quote")
_ADDRESSES: Final = (
    "ip", "isIP", "ip.isCanonical", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast",
    "isLinkLocalUnicast", "isGlobalUnicast",
)  # fmt: skip
_FORMATS: Final = (
    "dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix", "dns1123SubdomainPrefix",
    "dns1035LabelPrefix", "labelValue", "uri", "uuid", "byte", "date", "datetime", "named",
)  # fmt: skip

LIBRARIES: Final = (
    Library("strings 2", 29, 30, _LATER_STRINGS),  # ext.Strings(2) replaces ext.Strings(0)
    Library("sets", 29, 30, ("sets.contains", "sets.equivalent", "sets.intersects")),
    Library("ip", 30, 31, _ADDRESSES, ("ip_to_string",)),
    Library("cidr", 30, 31, ("cidr", "isCIDR", "containsIP", "containsCIDR", "masked", "prefixLength"), ("cidr_to_string",)),
    Library("format", 31, 32, ("validate", *(f"format.{name}" for name in _FORMATS))),
    Library("authorizer selectors", 31, 32, ("fieldSelector", "labelSelector")),  # by the gate AuthorizeWithSelectors
    Library(
        "two-variable comprehensions", 32, 33, ("cel.@mapInsert",),
        macros=(
            ("all", (3,)), ("exists", (3,)), ("exists_one", (3,)), ("existsOne", (3,)), ("transformList", (3, 4)),
            ("transformMap", (3, 4)), ("transformMapEntry", (3, 4)),
        ),
    ),
    Library("optionals 2", 33, 33, ("first", "last", "optional.unwrap", "unwrapOpt")),  # with cel-go 0.23
    Library(
        "semver", 33, 34, ("semver", "isSemver", "major", "minor", "patch"),
        ("semver_is_greater_than", "semver_is_less_than", "semver_compare_to"),
    ),
    Library(
        "lists", 34, 35, ("slice", "flatten", "sort", "@sortByAssociatedKeys", "lists.range", "reverse", "distinct"),
        macros=(("sortBy", (2,)),),
    ),
    Library("lists of Kubernetes 1", 37, 38, ("includes",)),
)  # fmt: skip
"""In the order in which they came."""

LITERALS_CHECKED: Final = 30
"""From here on the compiler checks literals of durations, timestamps and patterns; before, evaluating them fails."""

VALUES_SHOWN: Final = 35
"""From here on the error of a rule shows the value, and none of an object or list; before, the type that the schema declares
(pkg/apiserver/schema/cel/validation.go of k8s.io/apiextensions-apiserver)."""

ESTIMATED: Final[dict[str, int]] = {
    "_==_": 32,
    **dict.fromkeys(
        ("ip", "isIP", "ip.isCanonical", "cidr", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), 34
    ),
}
"""From which release on the estimates of costs know a function's own costs; before, a call costs 1, and a comparison of
values of Kubernetes' types as much as one of strings of any length (pkg/cel/library/cost.go, CostEstimator.EstimateCallCost)."""

EVALUATED: Final[dict[str, int]] = {"quantity": 30, "isQuantity": 30, "_==_": 32}
"""From which release on a call costs what the function itself says when it is evaluated; before, 1, and a comparison of
addresses as much as one of their bytes (pkg/cel/library/cost.go, CostEstimator.CallCost)."""


def missing(release: int, *, stored: bool = False) -> tuple[Library, ...]:
    """The libraries that new expressions may not use, or with `stored` those that the release does not know."""
    return tuple(library for library in LIBRARIES if (library.stored if stored else library.new) > release)


def since(name: str) -> int | None:
    """The release from which new expressions may use a function or macro; None if all may, or if there is none."""
    for library in LIBRARIES:
        if name in library.functions or name in {macro for macro, _ in library.macros}:
            return library.new
    return None
