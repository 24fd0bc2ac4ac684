"""The names of objects that depend on more than their syntax: on the length, or on other fields.

`data/kinds.json` has the conditions as `nameAlso`, beside the rule for the syntax (the ValidateName functions of the kinds
in upstream's pkg/apis/*/validation).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noxu.api.names import NameRule, path_segment_name, subdomain_name
from noxu.go.text import quote
from noxu.values import Object, nested_field


def ip_name(name: str, prefix: bool = False) -> list[str]:  # noqa: ARG001
    """The name is an address, as Go prints it. Such names are not generated."""
    from noxu.kinds.addresses import address_texts  # imported late: few objects have such names

    return address_texts(name)


def with_conditions(rule: NameRule, conditions: Object) -> Callable[[Object], NameRule]:
    """The rule for the name of an object, given the object."""
    if "maxLength" in conditions:
        return lambda _: _limited(rule, conditions["maxLength"])
    if "equals" in conditions:
        return lambda value: _equal_to(_joined(value, conditions["equals"]), conditions["equals"])
    if "prefixFrom" in conditions:
        return lambda value: _with_prefix_from(nested_field(value, conditions["prefixFrom"]) or "", conditions)
    return lambda _: rule


def _limited(rule: NameRule, limit: int) -> NameRule:
    def check(name: str, prefix: bool = False) -> list[str]:
        return [*([f"must be no more than {limit} characters"] if len(name) > limit else []), *rule(name, prefix)]

    return check


def _joined(value: Object, parts: list[str]) -> str:
    """Paths and texts: `spec.version`, `.`, `spec.group`."""
    return "".join(nested_field(value, part) or "" if part.startswith("spec.") else part for part in parts)


def _equal_to(expected: str, parts: list[str]) -> NameRule:
    described: Final = "+".join(part if part.startswith("spec.") else quote(part) for part in parts)

    def check(name: str, prefix: bool = False) -> list[str]:
        wrong = path_segment_name(name, prefix)
        return wrong or ([] if name == expected else [f"must be `{described}`: {quote(expected)}"])

    return check


def _with_prefix_from(source: str, conditions: Object) -> NameRule:
    """The name begins with a field in which `replace` is replaced; without it, the name cannot be mistaken for one."""
    old, new = conditions["replace"]
    beginning = f"{source.replace(old, new)}{new}"

    def check(name: str, prefix: bool = False) -> list[str]:
        if source and not name.startswith(beginning):
            return [f"ClusterTrustBundle for signerName {source} must be named with prefix {beginning}"]
        if not source and new in name:
            return [f"ClusterTrustBundle without signer name must not have {quote(new)} in its name"]
        return subdomain_name(name.removeprefix(beginning) if source else name, prefix)

    return check
