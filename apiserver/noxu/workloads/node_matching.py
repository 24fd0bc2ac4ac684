"""Whether a pod may be on a node as far as the node's taints and labels say: tolerations, node selectors, node affinity.

Pure, and used by the scheduler and by the controller of DaemonSets. Sources: component-helpers/scheduling/corev1
(helpers.go, nodeaffinity/nodeaffinity.go), api/core/v1/toleration.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from noxu.api.selectors import EXISTS, GREATER, IN, LESS, MISSING, NOT_IN, Requirement
from noxu.values import Object

KEEPS_OFF: Final = ("NoSchedule", "NoExecute")
"""The effects of taints that keep a pod off a node. PreferNoSchedule only makes it less attractive."""
UNSCHEDULABLE: Final[Object] = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
"""The taint of a cordoned node."""

_OPERATORS: Final = {
    "In": IN,
    "NotIn": NOT_IN,
    "Exists": EXISTS,
    "DoesNotExist": MISSING,
    "Gt": GREATER,
    "Lt": LESS,
}
_COMPARED: Final[dict[str, Callable[[int, int], bool]]] = {
    "Gt": lambda taint, toleration: taint > toleration,
    "Lt": lambda taint, toleration: taint < toleration,
}


def tolerates(toleration: Object, taint: Object) -> bool:
    """Toleration.ToleratesTaint: an empty key with Exists tolerates every key, an empty effect every effect."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    wanted, value = toleration.get("value") or "", taint.get("value") or ""
    if operator == "Equal":
        return bool(wanted == value)
    compare = _COMPARED.get(operator)
    numbers = _integer(value), _integer(wanted)
    return compare is not None and None not in numbers and compare(*numbers)  # type: ignore[arg-type]


def _integer(text: str) -> int | None:
    return int(text) if text.removeprefix("-").isdecimal() and text.isascii() else None


def untolerated(taints: Iterable[Object], tolerations: Sequence[Object], effects: Collection[str]) -> Object | None:
    """The first taint of some effects that no toleration tolerates."""
    for taint in taints:
        if taint.get("effect") in effects and not any(tolerates(one, taint) for one in tolerations):
            return taint
    return None


def matches_term(term: Object, labels: Mapping[str, str], name: str) -> bool:
    """Whether a NodeSelectorTerm matches a node of these labels and this name. An empty one matches nothing."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(_matches(it, labels) for it in expressions) and all(
        _matches(it, {"metadata.name": name}) for it in fields
    )


def matches_selector(selector: Object | None, labels: Mapping[str, str], name: str) -> bool:
    """Whether a NodeSelector matches: one of its terms does. None matches everything."""
    if selector is None:
        return True
    return any(matches_term(term, labels, name) for term in selector.get("nodeSelectorTerms") or ())


def matches_node(spec: Object, labels: Mapping[str, str], name: str) -> bool:
    """Whether the nodeSelector and the required node affinity of a pod's spec match a node (GetRequiredNodeAffinity)."""
    for key, value in (spec.get("nodeSelector") or {}).items():
        if labels.get(key) != value:
            return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return matches_selector(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"), labels, name)


def _matches(expression: Object, values: Mapping[str, str]) -> bool:
    operator = _OPERATORS.get(expression.get("operator", ""))
    given = tuple(expression.get("values") or ())
    if operator is None or (operator in (GREATER, LESS) and len(given) != 1):
        return False
    return Requirement(expression["key"], operator, given).matches(values)
