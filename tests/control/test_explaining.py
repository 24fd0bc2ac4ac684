"""What a write would do, on a server and with a changed definition: nothing of it is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, Final

import pytest

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.control import arguments, coverage_calls, explaining, schema_calls
from noxu.control.calls import ControlCall, ControlRoute
from noxu.control.running import Control
from noxu.control_plane import ControlPlane, running
from noxu.manifests import loading
from noxu.registry.access import ANONYMOUS
from noxu.values import Object
from noxu_storage.memory import MemoryStore
from tests import definitions
from tests.control_planes import assemble


def defined(**properties: Object) -> Object:
    """The definition of Widgets, with these fields of the spec and a rule."""
    known: dict[str, Object] = {
        "low": {"type": "integer", "default": 1},
        "high": {"type": "integer", "maximum": 20},
        "colour": {"type": "string", "enum": ["red", "blue"]},
    }
    spec = {
        "type": "object",
        "x-kubernetes-validations": [{"rule": "self.low <= self.high", "message": "low is above high"}],
        "properties": {name: schema for name, schema in {**known, **properties}.items() if schema},
    }
    return definitions.widgets(definitions.version({"type": "object", "properties": {"spec": spec}}))


def widget(name: str, **spec: Any) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def edited(**spec: Any) -> Object:
    """Those of the stored ones that change."""
    return widget("w2", **spec)


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    """With three Widgets; the calls change nothing."""
    async with running(assemble(MemoryStore())) as plane:
        await loading.apply(plane, defined())
        for number in range(1, 4):
            await loading.apply(plane, widget(f"w{number}", high=number * 5, colour="red"))
        yield plane


async def called(
    plane: ControlPlane, route: ControlRoute, query: dict[str, list[str]], control: Control | None = None, **body: Any
) -> Object:
    """What a route answers; nothing is written meanwhile."""
    control = Control(SimpleNamespace(plane=plane)) if control is None else control
    before = plane.store.revision
    sent = arguments.from_body(codec.encode(body, sort_keys=False) if body else b"", route.body, route.path)
    asked = arguments.from_query(query, route.query, route.path)
    answer = await route.answer(ControlCall({}, asked, sent, ANONYMOUS, control))
    assert plane.store.revision == before
    assert isinstance(answer, dict)
    return answer


async def explained(plane: ControlPlane, **body: Any) -> Object:
    return await called(plane, explaining.ROUTES[0], {}, **body)


def said(verdict: Object) -> list[tuple[str, str]]:
    return [(reason["what"], reason["path"]) for reason in verdict["reasons"] if reason["what"] != "set"]


OBJECTS: Final[list[tuple[str, Object | str, bool, list[tuple[str, str]]]]] = [
    ("a new one", widget("new", high=3), True, [("defaulted", "spec.low")]),
    ("a text of YAML", "{apiVersion: example.com/v1, kind: Widget, metadata: {name: new}, spec: {high: 3, low: 2}}", True, []),
    ("a misspelt field", widget("new", hihg=3, high=3, low=1), True, [("pruned", "spec.hihg")]),
    ("a rule", widget("new", high=3, low=4), False, [("refused", "spec")]),
    ("a limit", widget("w1", high=30), False, [("refused", "spec.high"), ("defaulted", "spec.low")]),
    ("no kind", {"metadata": {"name": "a"}}, False, [("refused", "")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "accepted", "expected"), [row[1:] for row in OBJECTS], ids=[row[0] for row in OBJECTS]
)
@pytest.mark.parametrize("is_trial", [False, True], ids=["here", "in a trial"])
async def test_an_object(
    plane: ControlPlane, sent: Any, accepted: bool, expected: list[tuple[str, str]], is_trial: bool
) -> None:
    answer = await explained(plane, object=sent, **({"definition": defined()} if is_trial else {}))
    assert (answer["object"]["accepted"], said(answer["object"])) == (accepted, expected)


async def test_a_rule_is_shown_with_its_values(plane: ControlPlane) -> None:
    answer = await explained(plane, object=widget("new", high=3, low=4))
    [reason] = [reason for reason in answer["object"]["reasons"] if reason["what"] == "refused"]
    assert (reason["rule"], reason["values"]) == ("self.low <= self.high", {"self.low": "4", "self.high": "3"})


async def test_a_policy_that_changes_an_object_is_named(plane: ControlPlane) -> None:
    rules = [{"apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["*"], "resources": ["widgets"]}]
    expression = 'Object{spec: Object.spec{colour: "blue"}}'
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    constraints = {"matchConstraints": {"resourceRules": rules}, "reinvocationPolicy": "Never"}
    for kind, spec in (
        ("MutatingAdmissionPolicy", {**constraints, "mutations": [mutation]}),
        ("MutatingAdmissionPolicyBinding", {"policyName": "paint"}),
    ):
        policy = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "paint"}}
        await loading.apply(plane, {**policy, "spec": spec})
    answer = await explained(plane, object=widget("new", high=3, colour="red"))
    [changed] = [reason for reason in answer["object"]["reasons"] if reason["what"] == "changed"]
    assert (changed["by"], changed["path"], changed["value"]) == ("paint", "spec.colour", "blue")


async def test_strict(plane: ControlPlane) -> None:
    answer = await explained(plane, object=widget("new", hihg=3, high=3), strict=True)
    assert answer["object"]["accepted"] is False
    assert ("refused", "") in said(answer["object"])


CHANGES: Final[list[tuple[str, Object, Object | None, list[tuple[str, str]]]]] = [
    ("nothing", defined(), None, []),
    ("a lower limit is forgiven where nothing changes", defined(high={"type": "integer", "maximum": 10}), None, [("forgiven", "spec.high")]),
    ("a field that is gone is pruned", defined(colour={}), None, [("pruned", "spec.colour")] * 3),
    ("a field of another type", defined(colour={"type": "integer"}), None, [("forgiven", "spec.colour")] * 3),
]  # fmt: skip


@pytest.mark.parametrize(
    ("definition", "sent", "expected"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES]
)
async def test_a_changed_definition_and_the_stored_objects(
    plane: ControlPlane, definition: Object, sent: Object | None, expected: list[tuple[str, str]]
) -> None:
    answer = await explained(plane, definition=definition)
    assert answer["definition"]["accepted"] is True
    stored = answer["stored"]
    assert [told for item in stored["items"] for told in said(item)] == expected
    assert (stored["checked"], stored["remaining"]) == (3, 0)


async def test_an_edited_object_against_a_changed_definition(plane: ControlPlane) -> None:
    definition = defined(high={"type": "integer", "maximum": 4})
    kept = await explained(plane, object=widget("w1", high=5, colour="blue"), definition=definition, stored=0)
    assert ("forgiven", "spec.high") in said(kept["object"])
    changed = await explained(plane, object=widget("w1", high=6, colour="blue"), definition=definition, stored=0)
    assert ("refused", "spec.high") in said(changed["object"])
    assert "stored" not in changed


async def test_a_definition_that_is_refused(plane: ControlPlane) -> None:
    answer = await explained(plane, object=widget("a"), definition=defined(high={"type": "integer", "default": "x"}))
    assert answer["definition"]["accepted"] is False
    path = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[high].default"
    assert said(answer["definition"]) == [("refused", path)]
    assert "object" not in answer


async def test_what_is_looked_at_is_limited(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = await explained(plane, definition=defined(), stored=2)
    assert (answer["stored"]["checked"], answer["stored"]["remaining"]) == (2, 1)
    monkeypatch.setattr(explaining, "MAX_STORED_BYTES", 1)
    answer = await explained(plane, definition=defined())
    assert (answer["stored"]["checked"], answer["stored"]["remaining"]) == (0, 3)


WRONG: Final[list[tuple[str, dict[str, Any], str]]] = [
    ("nothing", {}, "object or definition: one of them is required"),
    ("another type", {"object": 3}, "object: expected an object, or its YAML as a text"),
    ("too many", {"object": widget("a"), "stored": 10_000}, "stored: it is between 0 and 1000"),
]


@pytest.mark.parametrize(("body", "message"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
async def test_what_is_refused(plane: ControlPlane, body: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as refusal:
        await explained(plane, **body)
    assert refusal.value.code == 422
    assert message in refusal.value.message


TEXTS: Final = [
    ("object", "a: [", "yaml: line 1"),
    ("object", "3", "it is no object"),
    ("definition", "a: [", "yaml: line 1"),
    ("definition", "kind: Widget", "it is no CustomResourceDefinition"),
]


@pytest.mark.parametrize(("field", "text", "why"), TEXTS)
async def test_a_text_that_is_being_written_is_refused_like_an_object(
    plane: ControlPlane, field: str, text: str, why: str
) -> None:
    answer = await explained(plane, **{field: text})
    assert answer[field]["accepted"] is False
    assert why in answer[field]["reasons"][0]["message"]
    if field == "definition":
        schema = await called(plane, schema_calls.ROUTES[1], {}, definition=text)
        assert why in schema["findings"][0]["message"]
        assert schema["tree"] is None


# -- schemas -----------------------------------------------------------------------------------------------------------


async def test_the_schema_of_a_kind(plane: ControlPlane) -> None:
    answer = await called(plane, schema_calls.ROUTES[0], {"type": ["widget"]})
    assert (answer["name"], answer["version"], answer["findings"]) == ("widgets.example.com", "v1", [])
    assert answer["counted"] == {"objects": 3, "remaining": 0}
    spec = next(field for field in answer["tree"]["fields"] if field["name"] == "spec")
    [rule] = spec["rules"]
    assert rule["cost"] > 0
    assert rule["expensive"] is False
    assert rule["stored"] == {"true": 3, "false": 0}
    used = {field["name"]: field.get("used") for field in spec["fields"]}
    assert used["low"] == {"set": 3, "default": 3}
    assert used["colour"] == {"set": 3, "values": {'"red"': 3}}


async def test_the_schema_of_a_definition_that_is_not_stored(plane: ControlPlane) -> None:
    rule = "self.all(p, self.filter(q, q.name == p.name).size() == 1)"
    parts = {
        "type": "array",
        "items": {"type": "object", "properties": {"name": {"type": "string"}}},
        "x-kubernetes-validations": [{"rule": rule}],
    }
    answer = await called(plane, schema_calls.ROUTES[1], {}, definition=defined(parts=parts))
    assert "maxItems" in answer["findings"][0]["advice"]
    spec = next(field for field in answer["tree"]["fields"] if field["name"] == "spec")
    [shown] = [field for field in spec["fields"] if field["name"] == "parts"]
    assert shown["rules"][0]["expensive"] is True


@pytest.mark.parametrize(
    ("kind", "code"), [("configmaps", 400), ("wdgets", 404)], ids=["a built-in kind", "a kind that is not served"]
)
async def test_kinds_without_a_tree(plane: ControlPlane, kind: str, code: int) -> None:
    with pytest.raises(ApiError) as refusal:
        await called(plane, schema_calls.ROUTES[0], {"type": [kind]})
    assert refusal.value.code == code


async def test_what_writes_show_is_counted_once_it_was_asked_for(plane: ControlPlane) -> None:
    control = Control(SimpleNamespace(plane=plane))
    schema, *_ = schema_calls.ROUTES

    async def rule() -> tuple[Any, Any]:
        answer = await called(plane, schema, {"type": ["widgets"]}, control)
        [spec] = [field for field in answer["tree"]["fields"] if field["name"] == "spec"]
        return answer.get("writes"), spec["rules"][0].get("written")

    assert await rule() == (None, None)
    await called(plane, coverage_calls.ROUTES[0], {}, control)
    await loading.apply(plane, widget("w4", high=9))
    with pytest.raises(ApiError):
        await loading.apply(plane, widget("w5", high=3, low=9))
    assert await rule() == (2, {"true": 1, "false": 1})
