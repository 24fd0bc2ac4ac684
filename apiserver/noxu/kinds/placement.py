"""Where pods are placed: node selectors, affinity, tolerations, topology spread constraints.

The rules are those of k8s.io/kubernetes pkg/apis/core/validation: ValidateNodeSelector, validateAffinity,
ValidateTolerations and validateTopologySpreadConstraints.
"""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import Path, as_json
from noxu.api.names import label_name, label_value, subdomain_name
from noxu.kinds import checks
from noxu.kinds.checks import Errors, label_selector_errors
from noxu.values import Object

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NOT_AN_OPERATOR: Final = "not a valid selector operator"
_TOLERATION_OPERATORS: Final = ["Equal", "Exists"]
"""Without Lt and Gt, whose feature gate is off."""


# -- nodes ------------------------------------------------------------------------------------------------------------


def node_selector(selector: Object, path: Path, *, any_value: bool = False) -> Errors:
    """`any_value`: the stored object has values that are no label values."""
    terms = selector.get("nodeSelectorTerms")
    path = f"{path}.nodeSelectorTerms"
    if not terms:
        yield field.required(path, "must have at least one node selector term")
    for n, term in enumerate(terms or ()):
        yield from _node_term(term, f"{path}[{n}]", any_value=any_value)


def _node_term(term: Object, path: Path, *, any_value: bool) -> Errors:
    for n, requirement in enumerate(term.get("matchExpressions") or ()):
        yield from _node_labels(requirement, f"{path}.matchExpressions[{n}]", any_value=any_value)
    for n, requirement in enumerate(term.get("matchFields") or ()):
        yield from _node_field(requirement, f"{path}.matchFields[{n}]")


def _node_labels(requirement: Object, path: Path, *, any_value: bool) -> Errors:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield field.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            rule = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield field.forbidden(f"{path}.values", rule)
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            rule = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield field.required(f"{path}.values", rule)
    else:
        yield field.invalid(f"{path}.operator", as_json(operator), _NOT_AN_OPERATOR)
    yield from checks.qualified(requirement.get("key", ""), f"{path}.key")
    if not any_value:
        for n, value in enumerate(values):
            yield from (field.invalid(f"{path}.values[{n}]", value, text) for text in label_value(value))


def _node_field(requirement: Object, path: Path) -> Errors:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator not in ("In", "NotIn"):
        yield field.invalid(f"{path}.operator", as_json(operator), _NOT_AN_OPERATOR)
    elif len(values) != 1:
        rule = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield field.required(f"{path}.values", rule)
    name = requirement.get("key", "")
    if name != "metadata.name":
        yield field.invalid(f"{path}.key", name, "not a valid field selector key")
        return
    for n, value in enumerate(values):
        yield from checks.named(value, subdomain_name, f"{path}.values[{n}]")


# -- pods -------------------------------------------------------------------------------------------------------------


def affinity(terms: Object, path: Path, *, any_value: bool = False) -> Errors:
    """`any_value`: the stored object has values that are no label values."""
    nodes = terms.get("nodeAffinity") or {}
    if nodes.get(_REQUIRED) is not None:
        yield from node_selector(nodes[_REQUIRED], f"{path}.nodeAffinity.{_REQUIRED}", any_value=any_value)
    for n, term in enumerate(nodes.get(_PREFERRED) or ()):
        where = f"{path}.nodeAffinity.{_PREFERRED}[{n}]"
        yield from _weight(term, where)
        yield from _node_term(term.get("preference") or {}, f"{where}.preference", any_value=True)
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = terms.get(kind) or {}
        for n, term in enumerate(pods.get(_REQUIRED) or ()):
            yield from _pod_term(term, f"{path}.{kind}.{_REQUIRED}[{n}]", any_value=any_value)
        for n, term in enumerate(pods.get(_PREFERRED) or ()):
            where = f"{path}.{kind}.{_PREFERRED}[{n}]"
            yield from _weight(term, where)
            yield from _pod_term(term.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm", any_value=any_value)


def _weight(term: Object, path: Path) -> Errors:
    if not 1 <= term.get("weight", 0) <= 100:
        yield field.invalid(f"{path}.weight", term.get("weight", 0), "must be in the range 1-100")


def _pod_term(term: Object, path: Path, *, any_value: bool) -> Errors:
    for name in ("labelSelector", "namespaceSelector"):
        if term.get(name):
            yield from label_selector_errors(term[name], f"{path}.{name}", any_value=any_value)
    for name in term.get("namespaces") or ():
        yield from checks.named(name, label_name, f"{path}.namespace")
    selector, match = term.get("labelSelector"), term.get("matchLabelKeys") or []
    mismatch = term.get("mismatchLabelKeys") or []
    both = {*match} & {*mismatch}
    yield from _label_keys(match, selector, f"{path}.matchLabelKeys")
    yield from _label_keys(mismatch, selector, f"{path}.mismatchLabelKeys")
    yield from _selected_twice(match, selector, path)
    for n, name in enumerate(match):
        if name in both:
            rule = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield field.invalid(f"{path}.matchLabelKeys[{n}]", name, rule)
    topology = term.get("topologyKey", "")
    if not topology:
        yield field.required(f"{path}.topologyKey", "can not be empty")
    yield from checks.qualified(topology, f"{path}.topologyKey")


def _label_keys(names: list[str], selector: Object | None, path: Path) -> Errors:
    if names and selector is None:
        yield field.forbidden(path, "must not be specified when labelSelector is not set")
        return
    for n, name in enumerate(names):
        yield from checks.qualified(name, f"{path}[{n}]")


def _selected_twice(names: list[str], selector: Object | None, path: Path) -> Errors:
    """A requirement of a key that is selected already, by another one or by the labels of the pod."""
    label_names = set((selector or {}).get("matchLabels") or ())
    positions = {name: n for n, name in enumerate(names)}
    for requirement in (selector or {}).get("matchExpressions") or ():
        name = requirement.get("key", "")
        if name in positions and name in label_names:
            yield field.invalid(f"{path}[{positions[name]}]", name, "exists in both matchLabelKeys and labelSelector")
        label_names.add(name)


def tolerations(items: list[Object], path: Path) -> Errors:
    for n, toleration in enumerate(items):
        where, name, operator = f"{path}[{n}]", toleration.get("key", ""), toleration.get("operator", "")
        effect, value = toleration.get("effect", ""), toleration.get("value", "")
        if name:
            yield from checks.qualified(name, f"{where}.key")
        elif operator != "Exists":
            rule = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield field.invalid(f"{where}.operator", as_json(operator), rule)
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            rule = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield field.invalid(f"{where}.effect", as_json(effect), rule)
        if operator in ("", "Equal"):
            if texts := label_value(value):
                yield field.invalid(f"{where}.operator", value, ";".join(texts))
        elif operator == "Exists":
            if value:
                rule = "value must be empty when `operator` is 'Exists'"
                yield field.invalid(f"{where}.operator", value, rule)
        else:
            yield field.not_supported(f"{where}.operator", as_json(operator), _TOLERATION_OPERATORS)
        if effect:
            yield from taint_effect(effect, f"{where}.effect")


def taint_effect(effect: str, path: Path) -> Errors:
    return checks.choice(effect, "core/v1.TaintEffect", path, declared=True)


def topology_spread(constraints: list[Object], path: Path) -> Errors:
    last = {(item.get("topologyKey", ""), item.get("whenUnsatisfiable", "")): n for n, item in enumerate(constraints)}
    for n, constraint in enumerate(constraints):
        kind = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
        yield from _spread(constraint, f"{path}[{n}]", is_repeated=last[kind] > n)


def _spread(constraint: Object, path: Path, *, is_repeated: bool) -> Errors:
    skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
    action, selector = constraint.get("whenUnsatisfiable", ""), constraint.get("labelSelector")
    if skew <= 0:
        yield field.invalid(f"{path}.maxSkew", skew, checks.NOT_POSITIVE)
    if not key:
        yield field.required(f"{path}.topologyKey", "can not be empty")
    yield from checks.choice(action, "core/v1.UnsatisfiableConstraintAction", f"{path}.whenUnsatisfiable")
    if is_repeated:
        yield field.duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
    least = constraint.get("minDomains")
    if least is not None and least <= 0:
        yield field.invalid(f"{path}.minDomains", least, checks.NOT_POSITIVE)
    if least is not None and action != "DoNotSchedule":
        rule = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield field.invalid(f"{path}.minDomains", least, rule)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        yield from checks.choice(constraint.get(policy), "core/v1.NodeInclusionPolicy", f"{path}.{policy}")
    names = constraint.get("matchLabelKeys") or []
    if names and selector is None:
        yield field.forbidden(f"{path}.matchLabelKeys", "must not be specified when labelSelector is not set")
    for n, name in enumerate(names):
        yield from checks.qualified(name, f"{path}.matchLabelKeys[{n}]")
    yield from _selected_twice(names, selector, f"{path}.matchLabelKeys")
    if selector:
        yield from label_selector_errors(selector, f"{path}.labelSelector")


def merge_label_keys(spec: Object, labels: dict[str, str]) -> None:
    """Select the values that a new pod has for the labels in matchLabelKeys and mismatchLabelKeys; in place."""
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge(constraint, labels)
    affinities: Object = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        pods: Object = affinities.get(kind) or {}
        for term in pods.get(_PREFERRED) or ():
            _merge(term.get("podAffinityTerm") or {}, labels)
        for term in pods.get(_REQUIRED) or ():
            _merge(term, labels)


def _merge(term: Object, labels: dict[str, str]) -> None:
    if term.get("labelSelector") is None:
        return
    for names, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for name in term.get(names) or ():
            if name in labels:
                requirement = {"key": name, "operator": operator, "values": [labels[name]]}
                term["labelSelector"].setdefault("matchExpressions", []).append(requirement)
