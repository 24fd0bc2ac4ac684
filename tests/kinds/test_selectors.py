"""Label and field selectors in objects are validated as meta/v1 does."""

from __future__ import annotations

from noxu.kinds.checks import field_requirement_errors, label_requirement_errors, label_selector_errors
from noxu.values import Object
from tests.rows import rows

LABEL = "a valid label must be an empty string or consist of"
LABEL_SELECTORS: list[tuple[str, Object, list[str]]] = [
    ("everything", {}, []),
    ("labels", {"matchLabels": {"a": "b", "example.com/c": ""}}, []),
    ("a bad key", {"matchLabels": {"a/b/c": "x"}}, ['s.matchLabels: Invalid value: "a/b/c": a valid label key must consist of']),
    ("a bad value", {"matchLabels": {"a": "-"}}, [f's.matchLabels: Invalid value: "-": {LABEL}']),
    ("labels in order", {"matchLabels": {"b": "-", "a": "+"}}, ['s.matchLabels: Invalid value: "+"', 's.matchLabels: Invalid value: "-"']),
    ("expressions", {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}, {"key": "a", "operator": "Exists"}]}, []),
    ("no values for In", {"matchExpressions": [{"key": "a", "operator": "In"}]}, ["s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"]),
    ("values for Exists", {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}, ["s.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"]),
    ("an unknown operator", {"matchExpressions": [{"key": "a", "operator": "Gt"}]}, ['s.matchExpressions[0].operator: Invalid value: "Gt": not a valid selector operator']),
    ("no key", {"matchExpressions": [{"operator": "Exists"}]}, ['s.matchExpressions[0].key: Invalid value: "": name part must be non-empty', 's.matchExpressions[0].key: Invalid value: "": name part must consist of']),
    ("a bad value of an expression", {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "-"]}]}, [f's.matchExpressions[0].values[1]: Invalid value: "-": {LABEL}']),
]  # fmt: skip


@rows(("selector", "errors"), [row[1:] for row in LABEL_SELECTORS], ids=[row[0] for row in LABEL_SELECTORS])  # fmt: skip
def test_label_selectors(selector: Object, errors: list[str]) -> None:
    found = [str(error) for error in label_selector_errors(selector, "s")]
    assert len(found) == len(errors)
    assert all(error.startswith(expected) for error, expected in zip(found, errors, strict=True))


def test_an_older_object_may_keep_bad_values_of_expressions() -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["-"]}]}
    assert label_selector_errors(selector, "s", any_value=True) == []


def test_newer_operators_may_be_allowed() -> None:
    assert label_requirement_errors({"key": "a", "operator": "Gt"}, "r", any_operator=True) == []
    assert field_requirement_errors({"key": "a", "operator": "Gt"}, "r", any_operator=True) == []


def test_field_requirements_need_a_key_only() -> None:
    assert field_requirement_errors({"key": "/", "operator": "In", "values": ["-"]}, "r") == []
    assert [str(error) for error in field_requirement_errors({"operator": "In"}, "r")] == [
        "r.key: Required value: must be specified",
        "r.values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
    ]
