"""Unknown fields of CRDs: all are found, also where servers do not look, and near names are suggested."""

from __future__ import annotations

from typing import Any

from noxu.crd.unknown import Unknown, nearest, unknown_fields
from tests.rows import rows

SCHEMA = "spec.versions[0].schema.openAPIV3Schema"


def v1(schema: Any, **spec: Any) -> Any:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {"versions": [version], **spec},
    }


def v1beta1(**spec: Any) -> Any:
    return {"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition", "spec": spec}


CRDS: list[tuple[str, Any, list[tuple[str, str]]]] = [
    ("none", v1({"type": "object", "default": {"any": "thing"}, "enum": [{"a": 1}]}), []),
    ("at the top", {**v1({}), "Spec": {}}, [("Spec", "spec")]),
    ("another case", v1({}, versions=[{"schema": {"openApiV3Schema": {}}}]), [("spec.versions[0].schema.openApiV3Schema", "openAPIV3Schema")]),
    ("another word", v1beta1(validation={"jsonSchema": {}}), [("spec.validation.jsonSchema", "openAPIV3Schema")]),
    ("no near name", v1({"mutable": True}), [(f"{SCHEMA}.mutable", "")]),
    ("below properties", v1({"properties": {"a.b": {"propertys": {}}}}), [(f"{SCHEMA}.properties[a.b].propertys", "properties")]),
    ("below items", v1({"items": {"requierd": []}}), [(f"{SCHEMA}.items.requierd", "required")]),
    ("below a list of items", v1({"items": [{}, {"requierd": []}]}), [(f"{SCHEMA}.items[1].requierd", "required")]),
    ("below additionalProperties", v1({"additionalProperties": {"x-kubernetes-list-typ": "map"}}), [(f"{SCHEMA}.additionalProperties.x-kubernetes-list-typ", "x-kubernetes-list-type")]),
    ("additionalProperties: true", v1({"additionalProperties": True}), []),
    ("in a rule", v1({"x-kubernetes-validations": [{"rule": "true", "mesage": "no"}]}), [(f"{SCHEMA}.x-kubernetes-validations[0].mesage", "message")]),
    ("of the other version", v1({}, validation={}), [("spec.validation", "")]),
    ("in the order of the document", v1({}, foo=1, bar=2), [("spec.foo", ""), ("spec.bar", "")]),
    ("values of other types are skipped", v1({"properties": 3, "items": "x"}, names=[]), []),
]  # fmt: skip


@rows(("crd", "unknown"), [row[1:] for row in CRDS], ids=[row[0] for row in CRDS])
def test_the_unknown_fields_of_a_crd(crd: Any, unknown: list[tuple[str, str]]) -> None:
    assert unknown_fields(crd) == [Unknown(*pair) for pair in unknown]


def test_errors_say_what_may_have_been_meant() -> None:
    assert str(Unknown("spec.foo").error) == "spec.foo: Forbidden: unknown field"
    assert str(Unknown("Spec", "spec").error) == 'Spec: Forbidden: unknown field: did you mean "spec"?'


def test_a_word_is_suggested_only_where_it_is_known() -> None:
    assert (nearest("jsonSchema", ["openAPIV3Schema"]), nearest("jsonSchema", ["kind"])) == ("openAPIV3Schema", "")


def test_the_nesting_is_not_limited() -> None:
    schema: Any = {"typ": "string"}
    for _ in range(3000):
        schema = {"items": schema}
    [found] = unknown_fields(v1(schema))
    assert (found.path.count(".items"), found.meant) == (3000, "type")
