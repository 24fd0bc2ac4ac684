"""Updates: immutable fields, and invalid values that a stored CRD may keep."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noxu.crd.internal import internal
from noxu.crd.strictness import Strictness
from noxu.crd.types import decode, default
from noxu.crd.validation import validate_status_update
from noxu.values import Json, Object

Build = Callable[..., Object]
Stored = Callable[[Object], Object]
UpdateMessages = Callable[..., list[str]]

ROOT = "spec.validation.openAPIV3Schema"
STRING = {"type": "string"}


def of(**properties: Json) -> Object:
    return {"type": "object", "properties": properties}


def listed(items: Object, list_type: str = "set", **more: Json) -> Object:
    return {"type": "array", "items": items, "x-kubernetes-list-type": list_type, **more}


def keyed(items: Object) -> Object:
    return listed(items, "map", **{"x-kubernetes-list-map-keys": ["k"]})


KEYED = {"type": "object", "properties": {"k": STRING}, "required": ["k"]}
ATOMIC_SET = "must be atomic as item of a list with x-kubernetes-list-type=set"

# A stored schema, a new one and its errors; then the errors of the new one if the stored one was valid.
SCHEMAS: list[tuple[str, Object, Object, list[str], list[str]]] = [
    (
        "unknown types",
        of(a={"type": "any"}),
        of(a={"type": "other"}),
        [],
        [f'{ROOT}.properties[a].type: Unsupported value: "other": supported values: "array", "boolean", "integer", "number", "object", "string"'],
    ),
    (
        "defaults with unknown fields",
        of(a={**of(x=STRING), "default": {"y": 1}}),
        of(b={**of(x=STRING), "default": {"z": 1}}),
        [],
        [f'{ROOT}.properties[b].default: Invalid value: {{"z":1}}: must not have unknown fields'],
    ),
    (
        "sets of what is not atomic",
        of(a=listed(of(x=STRING))),
        of(b=listed(of(x=STRING))),
        [],
        [f"{ROOT}.properties[b].items.x-kubernetes-map-type: Invalid value: null: {ATOMIC_SET}"],
    ),
    (
        "keys that may be missing",
        of(a=keyed({**KEYED, "required": []})),
        of(b=keyed({**KEYED, "nullable": True})),
        [],
        [f"{ROOT}.properties[b].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map"],
    ),
    (
        "missing structure is not kept",
        of(a={}),
        of(a={}),
        [f"{ROOT}.properties[a].type: Required value: must not be empty for specified object fields"],
        [f"{ROOT}.properties[a].type: Required value: must not be empty for specified object fields"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "kept", "new"), [row[1:] for row in SCHEMAS], ids=[row[0] for row in SCHEMAS]
)
def test_constructs_that_stored_schemas_may_keep(
    build: Build,
    stored: Stored,
    update_messages: UpdateMessages,
    before: Object,
    after: Object,
    kept: list[str],
    new: list[str],
) -> None:
    assert update_messages(build(after), stored(build(before))) == kept
    assert update_messages(build(after), stored(build(of()))) == new


def preserving(build: Build, schema: Object | None, **spec: Json) -> Object:
    crd = build(schema, preserveUnknownFields=True, **spec)
    if schema is None:
        crd["spec"]["versions"][0]["schema"] = None
    return crd


def test_crds_that_preserve_unknown_fields_may_go_on_without_structure(
    build: Build, stored: Stored, update_messages: UpdateMessages
) -> None:
    old = stored(preserving(build, of(a={})))
    assert update_messages(preserving(build, of(b={})), old) == []
    missing = "Required value: must not be empty for specified object fields"
    assert update_messages(build(of(b={})), old) == [f"{ROOT}.properties[b].type: {missing}"]
    assert update_messages(preserving(build, of(b={}, c={**STRING, "default": "x"})), old) == [
        "spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema",
        f"{ROOT}.properties[b].type: {missing}",
    ]
    extended = of(b={}, c={"x-kubernetes-int-or-string": True})
    assert update_messages(preserving(build, extended), old) == [f"{ROOT}.properties[b].type: {missing}"]
    structural = stored(preserving(build, of(a=STRING)))
    assert update_messages(preserving(build, of(b={})), structural) == [f"{ROOT}.properties[b].type: {missing}"]
    unsupported = stored(preserving(build, {**of(), "id": "x"}))
    assert update_messages(preserving(build, of(b={})), unsupported) == []


def test_preserving_unknown_fields_is_for_crds_that_did_before(
    build: Build, stored: Stored, update_messages: UpdateMessages
) -> None:
    assert update_messages(preserving(build, of()), stored(build(of()))) == [
        "spec.preserveUnknownFields: Invalid value: true: cannot set to true, "
        "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    ]
    config = {"clientConfig": {"url": "https://h"}, "conversionReviewVersions": ["v1"]}
    crd = preserving(build, of(), conversion={"strategy": "Webhook", "webhook": config})
    assert update_messages(crd, stored(preserving(build, of()))) == [
        'spec.conversion.strategy: Invalid value: "Webhook": must be None if spec.preserveUnknownFields is true'
    ]


def test_schemas_may_stay_missing(build: Build, stored: Stored, update_messages: UpdateMessages) -> None:
    without = build(version={"schema": None})
    served = "spec.versions[0].schema.openAPIV3Schema: Required value: because otherwise all fields are pruned"
    assert update_messages(without, stored(without)) == [served]
    assert update_messages(build(version={"schema": None, "served": False}), stored(without)) == []
    assert update_messages(preserving(build, None), stored(preserving(build, None))) == []
    assert update_messages(without, stored(build())) == ["spec.versions[0].schema.openAPIV3Schema: Required value"]


def test_names_of_established_crds_are_fixed(
    build: Build, stored: Stored, establish: Callable[[Object], Object], update_messages: UpdateMessages
) -> None:
    new = build(scope="Namespaced", names={"plural": "foos", "kind": "Bar"})
    assert update_messages(new, stored(build())) == []
    assert update_messages(new, establish(stored(build()))) == [
        'spec.scope: Invalid value: "Namespaced": field is immutable',
        'spec.names.kind: Invalid value: "Bar": field is immutable',
    ]


def test_group_and_plural_are_always_fixed(build: Build, stored: Stored, update_messages: UpdateMessages) -> None:
    new = build(group="other.com", names={"plural": "bars", "kind": "Foo"})
    new["metadata"] = {}
    assert update_messages(new, stored(build())) == [
        'spec.group: Invalid value: "other.com": field is immutable',
        'spec.names.plural: Invalid value: "bars": field is immutable',
    ]  # that the name fits them is a matter of creation


def webhook(bundle: str = "", *reviews: str) -> Object:
    config = {"clientConfig": {"url": "https://h", "caBundle": bundle}, "conversionReviewVersions": list(reviews)}
    return {"strategy": "Webhook", "webhook": config}


def test_unknown_review_versions(build: Build, stored: Stored, update_messages: UpdateMessages) -> None:
    new = build(conversion=webhook("", "v8"))
    assert update_messages(new, stored(build(conversion=webhook("", "v7")))) == []
    for old in (build(), build(conversion=webhook("", "v1")), build(conversion=webhook())):
        assert update_messages(new, stored(old)) == [
            'spec.conversion.conversionReviewVersions: Invalid value: ["v8"]: must include at least one of v1, v1beta1'
        ]


def test_unreadable_ca_bundles(
    build: Build, stored: Stored, establish: Callable[[Object], Object], update_messages: UpdateMessages
) -> None:
    new = build(conversion=webhook("Zm9v", "v1"))
    unreadable = stored(build(conversion=webhook("YmFy", "v1")))
    assert update_messages(new, stored(build())) == []
    assert update_messages(new, establish(unreadable)) == []
    assert update_messages(new, establish(stored(build(conversion=webhook("", "v1"))))) == [
        'spec.conversion.webhookClientConfig.caBundle: Invalid value: "Zm9v": '
        "unable to load root certificates: unable to parse bytes as PEM block"
    ]


MANY = of(**{f"f{n}": STRING for n in range(11)})


def selecting(build: Build, *numbers: int, schema: Object = MANY) -> Object:
    return build(schema, version={"selectableFields": [{"jsonPath": f".f{n}"} for n in numbers]})


def test_too_many_selectable_fields(build: Build, stored: Stored, update_messages: UpdateMessages) -> None:
    old = stored(selecting(build, *range(9)))
    assert update_messages(selecting(build, *range(9)), old) == []
    assert update_messages(selecting(build, *range(10)), old) == [
        "spec.selectableFields: Too many: 10: must have at most 8 items"
    ]
    assert update_messages(selecting(build, *range(9)), stored(selecting(build, *range(8)))) != []


def test_too_many_selectable_fields_of_one_version(
    build: Build, stored: Stored, update_messages: UpdateMessages
) -> None:
    def versions(*numbers: int) -> Object:
        fields = [{"jsonPath": f".f{n}"} for n in numbers]
        one = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": MANY}}
        two = {**one, "name": "v2", "storage": False, "schema": {"openAPIV3Schema": {**MANY, "title": "t"}}}
        return build(versions=[one, {**two, "selectableFields": fields}])

    old = stored(versions(*range(9)))
    assert update_messages(versions(*range(9)), old) == []
    assert update_messages(versions(*range(1, 10)), old) == [
        "spec.versions[1].selectableFields: Too many: 9: must have at most 8 items"
    ]


def test_approvals_are_checked_when_they_change(build: Build, stored: Stored, update_messages: UpdateMessages) -> None:
    def approved(text: str | None) -> Object:
        crd = build(group="a.k8s.io")
        crd["metadata"]["annotations"] = {} if text is None else {"api-approved.kubernetes.io": text}
        return crd

    for text in ("https://x.y/z", "unapproved", "yes", None):
        assert update_messages(approved(text), stored(approved(text))) == []
    assert update_messages(approved("no"), stored(approved("yes"))) == []
    assert len(update_messages(approved("yes"), stored(approved(None)))) == 1
    assert len(update_messages(approved(None), stored(approved("https://x.y/z")))) == 1


def test_versions_that_were_stored_must_stay(build: Build, stored: Stored, update_messages: UpdateMessages) -> None:
    new = build(version={"name": "v2"})
    why = (
        "missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage "
        "migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"
    )
    assert update_messages(new, stored(build())) == [f'status.storedVersions[0]: Invalid value: "v1": {why}']


def test_status_updates_look_at_accepted_names_only(build: Build, stored: Stored) -> None:
    old = stored(build())
    status = {**old["status"], "acceptedNames": {"plural": "F", "kind": ""}, "storedVersions": []}
    errors = [str(error) for error in validate_status_update({**old, "status": status}, old)]
    assert [error.partition(":")[0] for error in errors] == ["status.acceptedNames.plural"]


# -- what rule checkers are given ----------------------------------------------------------------------------------


def spec_of(crd: Object) -> Object:
    spec: Object = default(decode(crd).value)["spec"]
    return spec


def test_expressions_that_were_there_before(build: Build) -> None:
    rules = [{"rule": "a"}, {"rule": "b", "messageExpression": "m"}]
    schema = of(
        x={**of(), "allOf": [{"x-kubernetes-validations": rules}]}, y={**of(), "x-kubernetes-validations": rules}
    )
    new = internal(spec_of(build()))
    strict = Strictness(new, internal(spec_of(build(schema))))
    assert strict.stored_rules == {"a", "b"}
    assert strict.stored_messages == {"m"}
    assert Strictness(new).stored_rules == Strictness(new).stored_messages == frozenset()


def test_versions_whose_schema_did_not_change(build: Build) -> None:
    def crd(first: str, second: str) -> Object:
        return build(
            versions=[
                {"name": f"v{n}", "served": True, "storage": n == 1, "schema": {"openAPIV3Schema": {"title": title}}}
                for n, title in enumerate((first, second), 1)
            ]
        )

    def unchanged(new: Object, old: Object) -> frozenset[str]:
        return Strictness(internal(spec_of(new)), internal(spec_of(old))).unchanged

    assert unchanged(crd("a", "b"), crd("a", "b")) == {"v1", "v2"}
    assert unchanged(crd("a", "c"), crd("a", "b")) == {"v1"}
    assert unchanged(crd("a", "a"), crd("a", "b")) == {"v1"}
    assert unchanged(crd("a", "b"), build(version={"name": "v9"})) == frozenset()
    assert unchanged(build(version={"name": "v9"}), crd("a", "b")) == frozenset()
    assert Strictness(internal(spec_of(crd("a", "b")))).unchanged == frozenset()
