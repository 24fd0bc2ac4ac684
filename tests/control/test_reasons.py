"""The reasons in a trace: what was done to which field, by whom, and why."""

from __future__ import annotations

from typing import Any, Final

from noxu.control.reasons import MAX_REASONS, about, covers, reasons
from noxu.registry.explain import FORGIVEN
from noxu.values import Object
from tests.rows import rows


def note(path: str = "", message: str = "", **rest: Any) -> Object:
    return {key: value for key, value in {"path": path, "message": message, **rest}.items() if value}


def added(path: str, value: Any) -> Object:
    return {"op": "add", "path": path, "value": value}


STEPS: Final[list[tuple[str, Object, list[Object]]]] = [
    (
        "an unknown field",
        {"stage": "prune", "patch": [{"op": "remove", "path": "/spec/hihg"}], "notes": [note("spec.hihg", "unknown", hint="did you mean spec.high?")]},
        [{"what": "pruned", "path": "spec.hihg", "stage": "prune", "message": "unknown", "hint": "did you mean spec.high?"}],
    ),
    (
        "a default, which is not a change as well",
        {"stage": "default", "patch": [added("/spec/low", 1)], "notes": [note("spec.low", "filled in", hint="the node")]},
        [{"what": "defaulted", "path": "spec.low", "stage": "default", "message": "filled in", "hint": "the node"}],
    ),
    (
        "a webhook's change",
        {"stage": "webhook tag.io", "patch": [added("/spec/tag", "x")]},
        [{"what": "changed", "path": "spec.tag", "stage": "webhook tag.io", "by": "tag.io", "op": "add", "value": "x"}],
    ),
    (
        "what a policy says",
        {"stage": "policy sizes", "notes": [note("", "too big")]},
        [{"what": "said", "path": "", "stage": "policy sizes", "by": "sizes", "message": "too big"}],
    ),
    (
        "a rule that failed, with its values",
        {"stage": "validate", "notes": [note("spec", "too low", rule="self.a < self.b", values={"self.a": "3"})]},
        [{"what": "refused", "path": "spec", "stage": "validate", "message": "too low", "rule": "self.a < self.b", "values": {"self.a": "3"}}],
    ),
    (
        "an error that ratcheting forgives",
        {"stage": "validate", "notes": [note("spec.high", "at most 20", hint=FORGIVEN)]},
        [{"what": "forgiven", "path": "spec.high", "stage": "validate", "message": "at most 20", "hint": FORGIVEN}],
    ),
    (
        "an error that ratcheting forgives, of which the server warns",
        {"stage": "validate", "notes": [note("spec", "too low", hint=FORGIVEN), note("", "spec: too low")]},
        [{"what": "forgiven", "path": "spec", "stage": "validate", "message": "too low", "hint": FORGIVEN}],
    ),
    (
        "what the server sets",
        {"stage": "set_system_fields", "patch": [{"op": "replace", "path": "/metadata/generation", "value": 2}]},
        [{"what": "set", "path": "metadata.generation", "stage": "set_system_fields", "op": "replace", "value": 2}],
    ),
    (
        "an error about the object itself",
        {"stage": "validate", "notes": [note("<nil>", "some rules were not checked")]},
        [{"what": "refused", "path": "", "stage": "validate", "message": "some rules were not checked"}],
    ),
    ("field managers", {"stage": "track_managers", "patch": [added("/metadata/managedFields", [])]}, []),
    ("what a client changes by a patch", {"stage": "patch", "patch": [added("/spec/low", 3)]}, []),
    ("a warning that the pruned field has already", {"stage": "refuse_unknown", "notes": [note("", 'unknown field "a"')]}, []),
    ("a stage without news", {"stage": "encode"}, []),
]  # fmt: skip


@rows("step, expected", [row[1:] for row in STEPS], [row[0] for row in STEPS])
def test_the_reasons_of_a_step(step: Object, expected: list[Object]) -> None:
    assert reasons([step]) == expected


DENIED: Final = "ValidatingAdmissionPolicy 'sizes' with binding 'sizes' denied request: too big"
STATUSES: Final[list[tuple[str, list[Object], Object, list[tuple[str, str]]]]] = [
    ("a message without causes", [], {"message": "denied"}, [("", "denied")]),
    (
        "causes",
        [],
        {"message": "m", "details": {"causes": [{"field": "spec.a", "message": "wrong"}]}},
        [("spec.a", "wrong")],
    ),
    (
        "a cause that the trace has with more",
        [{"stage": "validate", "notes": [note("spec.a", "wrong", rule="self > 1")]}],
        {"message": "m", "details": {"causes": [{"field": "spec.a", "message": "wrong"}]}},
        [("spec.a", "wrong")],
    ),
]


@rows("steps, status, expected", [row[1:] for row in STATUSES], [row[0] for row in STATUSES])
def test_a_refusal_is_said_once(steps: list[Object], status: Object, expected: list[tuple[str, str]]) -> None:
    found = [reason for reason in reasons(steps, status) if reason["what"] == "refused"]
    assert [(reason["path"], reason["message"]) for reason in found] == expected


REFUSALS: Final[list[tuple[str, list[Object], str, list[Object]]]] = [
    (
        "a policy, with its expression and the values in it",
        [
            {"stage": "policy odd", "notes": [note("", "odd")]},
            {"stage": "policy sizes", "notes": [note("", "too big", rule="object.n < 3", values={"object.n": "5"})]},
            {"stage": "admit", "notes": [note("", DENIED)]},
        ],
        DENIED,
        [
            {"what": "refused", "path": "", "stage": "policy sizes", "by": "sizes", "message": DENIED, "rule": "object.n < 3", "values": {"object.n": "5"}},
            {"what": "said", "path": "", "stage": "policy odd", "by": "odd", "message": "odd"},
        ],
    ),
    (
        "a webhook",
        [{"stage": "admit", "notes": [note("", "webhook a.io: no")]}, {"stage": "webhook a.io", "notes": [note("", "webhook a.io: no")]}],
        "webhook a.io: no",
        [{"what": "refused", "path": "", "stage": "webhook a.io", "by": "a.io", "message": "webhook a.io: no"}],
    ),
    (
        "a stage, which is named",
        [{"stage": "check_resource_version", "notes": [note("", "it was modified")]}],
        "it was modified",
        [{"what": "refused", "path": "", "stage": "check_resource_version", "message": "it was modified"}],
    ),
]  # fmt: skip


@rows("steps, message, expected", [row[1:] for row in REFUSALS], [row[0] for row in REFUSALS])
def test_who_refuses_the_whole_object(steps: list[Object], message: str, expected: list[Object]) -> None:
    assert reasons(steps, {"message": message}) == expected


def test_what_people_want_to_read_comes_first_and_not_without_end() -> None:
    steps = [
        {"stage": "default", "notes": [note(f"spec.f{n}", "filled in") for n in range(MAX_REASONS)]},
        {"stage": "validate", "notes": [note("spec", "too low")]},
    ]
    found = reasons(steps)
    assert (found[0]["what"], len(found)) == ("refused", MAX_REASONS)


@rows(
    "above, path, expected",
    [
        ("spec", "spec", True),
        ("spec", "spec.size", True),
        ("spec.parts", "spec.parts[0].name", True),
        ("spec", "special", False),
        ("spec.size", "spec", False),
    ],
)
def test_what_a_path_covers(above: str, path: str, expected: bool) -> None:
    assert covers(above, path) is expected
    assert bool(about([{"path": above}], path)) is expected


def test_what_is_about_the_whole_object_is_about_each_field() -> None:
    assert about([{"path": ""}], "spec") == [{"path": ""}]
