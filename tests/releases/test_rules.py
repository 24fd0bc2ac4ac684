"""Rules that some releases of Kubernetes refuse: the verdict and its reason in each of them.

Where a function came with a release, its first use in a rule is one later: see `noxu.releases.libraries`. The verdicts follow
from upstream's files at the tags of the releases: pkg/cel/environment/base.go (functions) and pkg/cel/library/cost.go
(estimates) of k8s.io/apiserver.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import pytest

from noxu.crd.lint import lint_crd
from noxu.registry.definitions import rule_checker
from noxu.values import Object
from tests.rows import rows

RELEASES: Final = (29, 30, 31, 32, 33, 34, 35, 36, 37)
LIMITED: Final = {"type": "string", "maxLength": 64}
PROPERTIES: Final[Object] = {
    "text": LIMITED,
    "other": LIMITED,
    "long": {"type": "string"},
    "size": {"type": "integer"},
    "names": {"type": "array", "maxItems": 8, "items": LIMITED},
    "numbers": {"type": "array", "maxItems": 8, "items": {"type": "integer"}},
    "long_names": {"type": "array", "maxItems": 100, "items": {"type": "string"}},
    "limits": {"type": "object", "maxProperties": 8, "additionalProperties": LIMITED},
}


def crd(rule: str, message: str = "") -> Object:
    rules = {"rule": rule, **({"messageExpression": message} if message else {})}
    spec = {"type": "object", "properties": PROPERTIES, "x-kubernetes-validations": [rules]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": True, "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    }  # fmt: skip


def errors(definition: Object, release: int) -> list[str]:
    return [error.detail for error in lint_crd(definition, checkers=partial(rule_checker, release=release))]


UNDECLARED: Final = "undeclared reference to '{}'"
# rule, the releases that refuse it from the first one to the last one, and a part of the reason
REFUSED_UNTIL: Final = [
    ("'%d'.format([self.size]) != self.text", 29, UNDECLARED.format("format")),
    ("strings.quote(self.text) != self.other", 29, UNDECLARED.format("strings")),
    ("sets.contains(['a', 'b'], self.names)", 29, UNDECLARED.format("sets")),
    ("sets.equivalent(self.numbers, [1, 2])", 29, UNDECLARED.format("sets")),
    ("sets.intersects(self.numbers, [1, 2])", 29, UNDECLARED.format("sets")),
    ("isIP(self.text)", 30, UNDECLARED.format("isIP")),
    ("ip(self.text).family() == 4", 30, UNDECLARED.format("ip")),
    ("ip.isCanonical(self.text)", 30, UNDECLARED.format("ip")),
    ("string(ip(self.text)) == self.text", 30, UNDECLARED.format("ip")),
    ("isCIDR(self.text)", 30, UNDECLARED.format("isCIDR")),
    ("cidr(self.text).containsIP(self.other)", 30, UNDECLARED.format("cidr")),
    ("cidr(self.text).masked().prefixLength() == 24", 30, UNDECLARED.format("cidr")),
    ("type(ip(self.text)) == net.IP", 30, UNDECLARED.format("net")),
    ("!format.dns1123Label().validate(self.text).hasValue()", 31, UNDECLARED.format("format")),
    ("!format.named(self.text).hasValue()", 31, UNDECLARED.format("format")),
    ("!format.uuid().validate(self.text).hasValue()", 31, UNDECLARED.format("format")),
    ("self.names.all(i, name, i < 3 || name != '')", 32, UNDECLARED.format("all")),
    ("self.limits.exists(key, value, key == value)", 32, UNDECLARED.format("exists")),
    ("self.names.existsOne(i, name, name == 'a')", 32, UNDECLARED.format("existsOne")),
    ("self.numbers.transformList(i, n, i * n) == [0, 1]", 32, UNDECLARED.format("transformList")),
    ("self.limits.transformMap(key, value, value + '!') != {}", 32, UNDECLARED.format("transformMap")),
    ("self.names.first().hasValue()", 32, UNDECLARED.format("first")),
    ("self.names.last().orValue('') != 'a'", 32, UNDECLARED.format("last")),
    ("semver(self.text).isLessThan(semver('2.0.0'))", 33, UNDECLARED.format("semver")),
    ("isSemver(self.text)", 33, UNDECLARED.format("isSemver")),
    ("self.names.distinct() == self.names", 34, UNDECLARED.format("distinct")),
    ("self.numbers.sort() == self.numbers", 34, UNDECLARED.format("sort")),
    ("self.names.reverse().size() > 1", 34, UNDECLARED.format("reverse")),
    ("self.numbers.slice(0, 1) == [1]", 34, UNDECLARED.format("slice")),
    ("lists.range(3) == self.numbers", 34, UNDECLARED.format("lists")),
    ("[[1], self.numbers].flatten() != []", 34, UNDECLARED.format("flatten")),
    ("self.names.sortBy(name, name.size()) == self.names", 34, UNDECLARED.format("sortBy")),
    ("self.names.includes('a')", 37, UNDECLARED.format("includes")),
    (
        "quantity(self.text) == quantity(self.other)",
        31,
        "estimated rule cost exceeds budget by factor of more than 100x",
    ),
]
REFUSED_FROM: Final = [
    ("self.long_names.all(name, isIP(name))", 34, "estimated rule cost exceeds budget"),
    ("self.long_names.all(name, isQuantity(name))", 34, "estimated rule cost exceeds budget"),
]


@rows(("rule", "last", "reason"), REFUSED_UNTIL, ids=[row[0] for row in REFUSED_UNTIL])
def test_a_rule_is_refused_until_a_release(rule: str, last: int, reason: str) -> None:
    definition = crd(rule)
    for release in RELEASES:
        found = errors(definition, release)
        assert bool(found) == (release <= last), (release, found)
    assert reason in errors(definition, last)[0]


@rows(("rule", "first", "reason"), REFUSED_FROM, ids=[row[0] for row in REFUSED_FROM])
def test_a_rule_is_refused_from_a_release_on(rule: str, first: int, reason: str) -> None:
    known = [release for release in RELEASES if release >= 31]
    refusing = [release for release in known if errors(crd(rule), release)]
    assert refusing == [release for release in known if release >= first]
    assert reason in errors(crd(rule), first)[0]


@pytest.mark.parametrize(
    "rule", ["self.text.matches('[')", "duration('1') < duration('2s')", "timestamp('x') == timestamp('y')"]
)
def test_a_wrong_literal_is_found_later_in_the_oldest_release(rule: str) -> None:
    """From 1.30 on the compiler checks literals; in 1.29 the program cannot be made."""
    assert "instantiation failed" in errors(crd(rule), 29)[0]
    assert "compilation failed" in errors(crd(rule), 30)[0]


def test_an_expression_of_a_message_may_use_what_rules_may() -> None:
    definition = crd("self.size > 0", "'%d is too small'.format([self.size])")
    assert [release for release in RELEASES if errors(definition, release)] == [29]


def test_a_stored_rule_may_use_what_the_release_itself_brought() -> None:
    definition = crd("isIP(self.text)")
    checkers = partial(rule_checker, release=30)
    assert not lint_crd(definition, checkers=checkers, old=definition)
    assert lint_crd(definition, checkers=partial(rule_checker, release=29), old=definition)
