"""Who has refused, changed or forgiven what: *Why?* says it while it is written, and a mark of the timeline afterwards.

A policy of each kind has its say about Widgets, and one of them is older than the limits that it exceeds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

import pytest

from noxu.commands.api_client import ApiClient
from noxu.values import Object
from tests.console.browser.conftest import write
from tests.console.definition import PATH, WIDGETS, widget
from tests.rows import rows

pytestmark = pytest.mark.slow
Open = Callable[..., Any]
NAME: Final = "widgets.example.com"
POLICIES: Final = "/apis/admissionregistration.k8s.io/v1"
DEFINITION: Final = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{NAME}"
CONSTRAINTS: Final[Object] = {
    "resourceRules": [
        {
            "apiGroups": ["example.com"],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["widgets"],
        }
    ]
}
VALIDATING: Final[Object] = {
    "matchConstraints": CONSTRAINTS,
    "variables": [{"name": "most", "expression": "7"}],
    "validations": [{"expression": "object.spec.size != variables.most", "message": "seven is no size"}],
}
MUTATING: Final[Object] = {
    "matchConstraints": CONSTRAINTS,
    "reinvocationPolicy": "Never",
    "matchConditions": [{"name": "small", "expression": "object.spec.size == 3"}],
    "mutations": [
        {
            "patchType": "ApplyConfiguration",
            "applyConfiguration": {"expression": "Object{spec: Object.spec{limit: 9}}"},
        }
    ],
}


@pytest.fixture(scope="module", autouse=True)
def admission(api: ApiClient) -> None:
    """Policies; and a Widget that the definition allowed once."""
    assert api.send("POST", PATH, value=widget("old", size=50, limit=60)).status == 201
    definition: Any = deepcopy(WIDGETS)
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["size"]["maximum"] = 20
    spec["x-kubernetes-validations"].append({"rule": "self.size + 20 <= 60", "message": "too large for its limit"})
    definition["metadata"]["resourceVersion"] = api.send("GET", DEFINITION).value["metadata"]["resourceVersion"]
    assert api.send("PUT", DEFINITION, value=definition).status == 200
    for plural, name, policy, binding in (
        ("validatingadmissionpolicies", "sizes", VALIDATING, {"validationActions": ["Deny"]}),
        ("mutatingadmissionpolicies", "limits", MUTATING, {}),
    ):
        named = {"metadata": {"name": name}}
        assert api.send("POST", f"{POLICIES}/{plural}", value={**named, "spec": policy}).status == 201
        bound = {**named, "spec": {"policyName": name, **binding}}
        bindings = plural.replace("policies", "policybindings")
        assert api.send("POST", f"{POLICIES}/{bindings}", value=bound).status == 201


def changed(name: str, **spec: object) -> Object:
    """The object with another label than before, so that its spec is what it was."""
    value = widget(name, **spec)
    value["metadata"] |= {"namespace": "default", "labels": {"tried": "yes"}}
    return value


CASES: Final[list[tuple[str, Object, str, list[str]]]] = [
    (
        "a validating policy refuses",
        widget("seven", size=7),
        "refused",
        [
            "ValidatingAdmissionPolicy 'sizes' with binding 'sizes' denied request: seven is no size",
            "object.spec.size != variables.most",
            "object.spec.size\n7",
            "variables.most\n7",
        ],
    ),
    (
        "a mutating policy changes",
        widget("small", size=3),
        "changed",
        ["spec.limit", "the policy limits adds it: 9"],
    ),
    (
        "ratcheting forgives",
        changed("old", size=50, limit=60),
        "forgiven",
        ["spec.size", "50", "should be less than or equal to 20", "too large for its limit", "self.size\n50"],
    ),
]


@rows("value, group, said", [row[1:] for row in CASES], [row[0] for row in CASES])
def test_why_says_it_while_it_is_written(open_page: Open, value: Object, group: str, said: list[str]) -> None:
    page = open_page(f"#/why/{NAME}/default/old")
    page.locator(".verdict").get_by_text("Accepted").wait_for()
    write(page, "The object, as YAML", json.dumps(value))
    reasons = page.locator(f".reasons.{group}")
    reasons.wait_for()
    text = reasons.inner_text()
    assert [each for each in said if each not in text] == []


@rows("value, group, said", [row[1:] for row in CASES], [row[0] for row in CASES])
def test_a_mark_says_it_afterwards(open_page: Open, api: ApiClient, value: Object, group: str, said: list[str]) -> None:
    name = value["metadata"]["name"]
    page = open_page(f"#/timeline?by=table&kind={NAME}&object=default/{name}")
    page.get_by_text("Live").wait_for()
    stored = api.send("GET", f"{PATH}/{name}")
    if stored.status == 200:
        version = stored.value["metadata"]["resourceVersion"]
        versioned = {**value, "metadata": {**value["metadata"], "resourceVersion": version}}
        api.send("PUT", f"{PATH}/{name}", value=versioned)
    else:
        api.send("POST", PATH, value=value)
    verb = "update" if stored.status == 200 else "create"
    page.get_by_role("row", name=f"{verb} {NAME} default/{name}").first.get_by_role("link").click()
    reasons = page.get_by_role("complementary").locator(f".reasons.{group}")
    reasons.wait_for()
    text = reasons.inner_text()
    assert [each for each in said if each not in text] == []
    assert page.get_by_role("complementary").get_by_role("heading", name="Said").count() == 0
