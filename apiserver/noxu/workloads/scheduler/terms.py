"""A term of pod affinity or anti-affinity: which pods it means, and in which domain (PodAffinityTerm; types.go).

It means the pods that its selector selects, in its namespaces and in those that its namespaceSelector selects; without either, in the
namespace of its own pod. `matchLabelKeys` and `mismatchLabelKeys` are labels of its own pod that the others must have, or must not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from noxu.api.selectors import IN, NOT_IN, NOTHING, LabelSelector, Requirement, label_selector
from noxu.values import Object

Labels = Mapping[str, str]
LabelsOf = Callable[[str], Labels]
"""The labels of a namespace."""


class AffinityTerm(NamedTuple):
    """`key` is the label of nodes that names their domain."""

    key: str
    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector

    def matches(self, namespace: str, labels: Labels, labels_of: LabelsOf) -> bool:
        """Whether it means a pod of this namespace with these labels."""
        if namespace not in self.namespaces:
            selector = self.namespace_selector
            if selector.nothing or not (selector.empty or selector.matches(labels_of(namespace))):
                return False
        return self.selector.matches(labels)


def terms(values: Sequence[Object] | None, namespace: str, labels: Labels) -> tuple[AffinityTerm, ...]:
    """The terms of a pod with this namespace and these labels."""
    return tuple(term(value, namespace, labels) for value in values or ())


def term(value: Object, namespace: str, labels: Labels) -> AffinityTerm:
    selector = readable(value.get("labelSelector"))
    selector = with_label_keys(selector, value.get("matchLabelKeys"), labels, IN)
    selector = with_label_keys(selector, value.get("mismatchLabelKeys"), labels, NOT_IN)
    namespaces, namespace_selector = value.get("namespaces") or (), value.get("namespaceSelector")
    own = () if namespaces or namespace_selector is not None else (namespace,)
    return AffinityTerm(value["topologyKey"], selector, frozenset((*namespaces, *own)), readable(namespace_selector))


def readable(selector: Object | None) -> LabelSelector:
    """A selector; one that was stored without being valid selects nothing."""
    try:
        return label_selector(selector)
    except ValueError:
        return NOTHING


def with_label_keys(
    selector: LabelSelector, keys: Sequence[str] | None, labels: Labels, operator: str
) -> LabelSelector:
    """A selector that also requires labels of a pod, or that others differ in them; those that the pod has not count for nothing."""
    more = [Requirement(key, operator, (labels[key],)) for key in keys or () if key in labels]
    if not more or selector.nothing:
        return selector
    return LabelSelector((*selector.requirements, *(it for it in more if it not in selector.requirements)))
