"""Taints and tolerations, node selectors and node affinity: upstream's tables (toleration_test.go, nodeaffinity_test.go)."""

from __future__ import annotations

from collections.abc import Sequence

from noxu.values import Object
from noxu.workloads.node_matching import KEEPS_OFF, matches_node, tolerates, untolerated
from tests.rows import rows

TAINT = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}


@rows(
    "what, toleration, taint, expected",
    [
        ("key, value and effect are equal", {"key": "gpu", "value": "a100", "effect": "NoSchedule"}, TAINT, True),
        ("Equal is the default operator", {"key": "gpu", "operator": "Equal", "value": "a100"}, TAINT, True),
        ("another value", {"key": "gpu", "value": "h100"}, TAINT, False),
        ("another key", {"key": "ssd", "value": "a100"}, TAINT, False),
        ("another effect", {"key": "gpu", "value": "a100", "effect": "NoExecute"}, TAINT, False),
        ("no effect is every effect", {"key": "gpu", "operator": "Exists"}, TAINT, True),
        ("no key with Exists is every key", {"operator": "Exists"}, TAINT, True),
        ("Exists ignores the value", {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}, TAINT, True),
        ("no value equals an empty one", {"key": "gpu"}, {"key": "gpu", "effect": "NoSchedule"}, True),
        ("Gt: the taint is greater", {"key": "n", "operator": "Gt", "value": "5"}, {"key": "n", "value": "6"}, True),
        ("Gt: the taint is not", {"key": "n", "operator": "Gt", "value": "5"}, {"key": "n", "value": "5"}, False),
        ("Lt: the taint is less", {"key": "n", "operator": "Lt", "value": "5"}, {"key": "n", "value": "-4"}, True),
        ("Lt: no number", {"key": "n", "operator": "Lt", "value": "5"}, {"key": "n", "value": "x"}, False),
    ],
)
def test_a_toleration_tolerates(what: str, toleration: Object, taint: Object, expected: bool) -> None:
    assert tolerates(toleration, taint) is expected


def test_the_first_taint_of_an_effect_that_nothing_tolerates_is_found() -> None:
    soft = {"key": "soft", "effect": "PreferNoSchedule"}
    drain = {"key": "drain", "effect": "NoExecute"}
    assert untolerated([soft, TAINT, drain], [], KEEPS_OFF) == TAINT
    assert untolerated([soft, TAINT, drain], [{"key": "gpu", "operator": "Exists"}], KEEPS_OFF) == drain
    assert untolerated([soft, TAINT], [{"key": "gpu", "operator": "Exists"}], KEEPS_OFF) is None


def required(*terms: Object) -> Object:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


def labelled(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def term(*expressions: Object, fields: Sequence[Object] = ()) -> Object:
    return {"matchExpressions": list(expressions), "matchFields": list(fields)}


@rows(
    "what, spec, labels, expected",
    [
        ("nothing is required", {}, {}, True),
        ("a selector that matches", {"nodeSelector": {"disk": "ssd"}}, {"disk": "ssd", "x": "y"}, True),
        ("a selector without its label", {"nodeSelector": {"disk": "ssd"}}, {}, False),
        ("In", required(term(labelled("disk", "In", "ssd", "nvme"))), {"disk": "nvme"}, True),
        ("In, another value", required(term(labelled("disk", "In", "ssd"))), {"disk": "hdd"}, False),
        ("NotIn, another value", required(term(labelled("disk", "NotIn", "ssd"))), {"disk": "hdd"}, True),
        ("NotIn, no label", required(term(labelled("disk", "NotIn", "ssd"))), {}, True),
        ("Exists", required(term(labelled("disk", "Exists"))), {"disk": ""}, True),
        ("DoesNotExist", required(term(labelled("disk", "DoesNotExist"))), {"disk": ""}, False),
        ("Gt", required(term(labelled("cores", "Gt", "8"))), {"cores": "16"}, True),
        ("Gt, equal", required(term(labelled("cores", "Gt", "16"))), {"cores": "16"}, False),
        ("Gt, no number", required(term(labelled("cores", "Gt", "8"))), {"cores": "many"}, False),
        ("Lt", required(term(labelled("cores", "Lt", "8"))), {"cores": "4"}, True),
        ("an unknown operator", required(term(labelled("cores", "Is", "4"))), {"cores": "4"}, False),
        (
            "all expressions of a term",
            required(term(labelled("a", "Exists"), labelled("b", "Exists"))),
            {"a": ""},
            False,
        ),
        ("any of the terms", required(term(labelled("a", "Exists")), term(labelled("b", "Exists"))), {"b": ""}, True),
        ("no term", required(), {}, False),
        ("an empty term matches nothing", required(term()), {}, False),
        ("an empty term beside another", required(term(), term(labelled("a", "Exists"))), {"a": ""}, True),
        ("a field", required(term(fields=[labelled("metadata.name", "In", "node-1")])), {}, True),
        ("another name", required(term(fields=[labelled("metadata.name", "In", "node-2")])), {}, False),
        (
            "a field and an expression",
            required(term(labelled("a", "Exists"), fields=[labelled("metadata.name", "In", "node-1")])),
            {},
            False,
        ),
        (
            "selector and affinity",
            {"nodeSelector": {"a": "x"}, **required(term(labelled("b", "Exists")))},
            {"a": "x"},
            False,
        ),
    ],
)
def test_a_pod_requires_labels_of_its_node(what: str, spec: Object, labels: Object, expected: bool) -> None:
    assert matches_node(spec, labels, "node-1") is expected
