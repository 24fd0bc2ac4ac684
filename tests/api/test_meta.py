"""ObjectMeta: how it is coerced when decoded, how it is validated, and its warnings."""

import json

import pytest

from noxu.api import meta
from noxu.api.field import FieldError
from noxu.api.meta import GroupVersionKind, coerce
from noxu.api.names import label_name, path_segment_name
from noxu.values import Json, Object
from tests.rows import rows

NOW = "2026-11-21T08:16:42Z"
OWNER = {"apiVersion": "apps/v1", "kind": "Set", "name": "n", "uid": "u"}

# Coercion

COERCED: list[tuple[str, Json, Object, list[str]]] = [
    ("null", None, {}, []),
    ("nothing", {}, {}, []),
    ("what is empty vanishes", {"name": "", "labels": {}, "finalizers": [], "generation": 0}, {}, []),
    ("null vanishes", {"name": None, "labels": None, "creationTimestamp": None, "deletionTimestamp": None}, {}, []),
    ("a null label is empty", {"labels": {"a": None}}, {"labels": {"a": ""}}, []),
    ("a null finalizer is empty", {"finalizers": [None]}, {"finalizers": [""]}, []),
    ("a pointer to zero stays", {"deletionGracePeriodSeconds": 0}, {"deletionGracePeriodSeconds": 0}, []),
    ("whole floats are integers", {"generation": 3.0}, {"generation": 3}, []),
    ("times are normal", {"creationTimestamp": "2026-11-21T08:16:42.123+05:30"}, {"creationTimestamp": "2026-11-21T02:46:42Z"}, []),
    ("the last day of a long month", {"creationTimestamp": "2026-12-31T23:59:59Z"}, {"creationTimestamp": "2026-12-31T23:59:59Z"}, []),
    ("the last day of a February", {"creationTimestamp": "2028-02-29T00:00:00Z"}, {"creationTimestamp": "2028-02-29T00:00:00Z"}, []),
    ("owners have all their names", {"ownerReferences": [None, {"uid": "u", "controller": False}]},
     {"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}, {"apiVersion": "", "kind": "", "name": "", "uid": "u", "controller": False}]}, []),
    ("managers", {"managedFields": [{"manager": "", "time": None, "fieldsV1": {"f:a": {}}}]}, {"managedFields": [{"fieldsV1": {"f:a": {}}}]}, []),
    ("unknown fields", {"foo": 1, "name": "a", "METADATA": 2, "Name": "x"}, {"name": "a"}, ["metadata.METADATA", "metadata.Name", "metadata.foo"]),
    ("unknown fields inside", {"ownerReferences": [{**OWNER, "x": 1}], "managedFields": [{"y": {}}]},
     {"ownerReferences": [OWNER], "managedFields": [{}]}, ["metadata.managedFields[0].y", "metadata.ownerReferences[0].x"]),
]  # fmt: skip


@rows(("given", "expected", "unknown"), [row[1:] for row in COERCED], ids=[row[0] for row in COERCED])
@pytest.mark.parametrize("drop_malformed", [False, True])
def test_metadata_is_brought_into_shape(
    given: Json, expected: Object, unknown: list[str], drop_malformed: bool
) -> None:
    result, paths = coerce(given, drop_malformed=drop_malformed)
    assert (json.dumps(result, sort_keys=True), paths) == (json.dumps(expected, sort_keys=True), unknown)


def test_the_fields_come_in_the_order_of_declaration() -> None:
    result, _ = coerce({"labels": {}, "uid": "u", "namespace": "n", "finalizers": ["f"], "name": "a"})
    assert list(result) == ["name", "namespace", "uid", "finalizers"]


FULL = {
    "name": "a",
    "generateName": "a-",
    "namespace": "n",
    "selfLink": "/x",
    "uid": "u",
    "resourceVersion": "1",
    "generation": 1,
    "creationTimestamp": NOW,
    "deletionTimestamp": NOW,
    "deletionGracePeriodSeconds": 0,
    "labels": {"a": "b"},
    "annotations": {"a": ""},
    "ownerReferences": [{**OWNER, "controller": True, "blockOwnerDeletion": False}],
    "finalizers": ["x/y"],
    "managedFields": [
        {"manager": "m", "operation": "Apply", "apiVersion": "v1", "time": NOW, "fieldsType": "FieldsV1",
         "fieldsV1": {}, "subresource": "status"}
    ],
}  # fmt: skip


def test_well_formed_metadata_is_not_copied() -> None:
    assert coerce(FULL).metadata is FULL
    assert list(FULL) == list(meta.OBJECT_META.fields)


@rows("name", FULL)
def test_every_field_alone_is_in_shape_and_comes_out_the_same(name: str) -> None:
    metadata = {name: FULL[name]}
    assert coerce(metadata).metadata is metadata
    assert coerce({**metadata, "unknown": 1}).metadata == metadata


WRONG: list[tuple[Json, str]] = [
    (3, "json: cannot unmarshal number into Go value of type v1.ObjectMeta"),
    ([], "json: cannot unmarshal array into Go value of type v1.ObjectMeta"),
    ("x", "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
    ({"name": 1}, "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"),
    ({"uid": True}, "json: cannot unmarshal bool into Go struct field ObjectMeta.uid of type types.UID"),
    ({"generation": "3"}, "json: cannot unmarshal string into Go struct field ObjectMeta.generation of type int64"),
    ({"generation": 3.5}, "json: cannot unmarshal number 3.5 into Go struct field ObjectMeta.generation of type int64"),
    ({"generation": 1e30}, "json: cannot unmarshal number 1e+30 into Go struct field ObjectMeta.generation of type int64"),
    ({"labels": []}, "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string"),
    ({"labels": {"b": 1, "a": None}}, "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
    ({"finalizers": {}}, "json: cannot unmarshal object into Go struct field ObjectMeta.finalizers of type []string"),
    ({"ownerReferences": [{"controller": 1}]}, "json: cannot unmarshal number into Go struct field OwnerReference.ownerReferences.controller of type bool"),
    ({"managedFields": [{"operation": []}]}, "json: cannot unmarshal array into Go struct field ManagedFieldsEntry.managedFields.operation of type v1.ManagedFieldsOperationType"),
    ({"creationTimestamp": 3}, "json: cannot unmarshal number into Go struct field ObjectMeta.creationTimestamp of type string"),
    ({"creationTimestamp": "x"}, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
    ({"creationTimestamp": ""}, 'parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'),
    ({"creationTimestamp": "2026-02-29T00:00:00Z"}, 'parsing time "2026-02-29T00:00:00Z": day out of range'),
    ({"labels": 1, "annotations": 1}, "json: cannot unmarshal number into Go struct field ObjectMeta.annotations of type map[string]string"),
    ({"labels": 1, "creationTimestamp": "x", "annotations": 1}, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
]  # fmt: skip


@rows(("given", "message"), WRONG)
def test_a_wrong_type_is_refused_in_gos_words(given: Json, message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole text is compared
        coerce(given)
    assert str(raised.value) == message


@rows("given", [given for given, _ in WRONG if isinstance(given, dict)])
def test_a_field_of_a_wrong_type_in_storage_is_left_out(given: Object) -> None:
    assert coerce({**given, "name": "a"} if "name" not in given else {**given, "uid": "u"}, drop_malformed=True) in [
        ({"name": "a"}, []),
        ({"uid": "u"}, []),
    ]


@pytest.mark.parametrize(
    ("given", "kind"),
    [(3, "int64"), (3.5, "float64"), (3.0, "float64"), ("x", "string"), (True, "bool"), ([], "[]interface {}")],
)
def test_metadata_in_storage_that_is_no_object_cannot_be_saved(given: Json, kind: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole text is compared
        coerce(given, drop_malformed=True)
    assert str(raised.value) == f"invalid metadata: expected object, got {kind}"


def test_unknown_fields_are_reported_below_the_path_given() -> None:
    assert coerce({"foo": 1}, path="spec.template.metadata").unknown == ["spec.template.metadata.foo"]


# Names of kinds, generated names


@pytest.mark.parametrize(
    ("text", "group", "version"), [("", "", ""), ("v1", "", "v1"), ("g/v1", "g", "v1"), ("g/", "g", ""), ("/", "", "")]
)
def test_an_api_version_is_a_group_and_a_version(text: str, group: str, version: str) -> None:
    assert meta.parse_api_version(text) == (group, version)


def test_an_api_version_with_two_slashes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^unexpected GroupVersion string: a/b/c$"):
        meta.parse_api_version("a/b/c")


def test_a_kind_has_an_api_version() -> None:
    assert GroupVersionKind("g", "v1", "Foo").api_version == "g/v1"
    assert GroupVersionKind("", "v1", "Foo").api_version == "v1"


@pytest.mark.parametrize(
    ("base", "name"), [("web-", "web-bcdfg"), ("x" * 70, "x" * 58 + "bcdfg"), ("é" * 29, "é" * 29 + "bcdfg")]
)
def test_a_generated_name_has_at_most_63_bytes(base: str, name: str) -> None:
    assert meta.generate_name(base, "bcdfg") == name


# Validation


def messages(errors: list[FieldError]) -> list[str]:
    return [str(error) for error in errors]


NAME = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
EVENT = {"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "u"}

INVALID: list[tuple[str, Object, list[str]]] = [
    ("nothing wrong", {}, []),
    ("no name", {"name": ""}, ["metadata.name: Required value: name or generateName is required"]),
    ("a bad name", {"name": "A"}, [f'metadata.name: Invalid value: "A": {NAME}']),
    ("a bad prefix", {"generateName": "A_"}, [f'metadata.generateName: Invalid value: "A_": {NAME}']),
    ("a negative generation", {"generation": -1}, ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"]),
    ("a bad label", {"labels": {"a b": "c d"}},
     [f'metadata.labels: Invalid value: "a b": {KEY}', f'metadata.labels: Invalid value: "c d": {VALUE}']),
    ("a bad annotation", {"annotations": {"A B": "anything goes"}}, [f'metadata.annotations: Invalid value: "A B": {KEY}']),
    ("letters do not matter in annotations", {"annotations": {"Example.COM/A": ""}}, []),
    ("too many bytes of annotations", {"annotations": {"a": "é" * 131_072}}, ["metadata.annotations: Too long: may not be more than 262144 bytes"]),
    ("just not too many", {"annotations": {"ab": "é" * 131_071}}, []),
    ("the bytes of a key whose lower case is ASCII", {"annotations": {"\u212a": "x" * 262_143}}, ["metadata.annotations: Too long: may not be more than 262144 bytes"]),
    ("a bad finalizer", {"finalizers": ["x y", "a/b/"]},
     [f'metadata.finalizers: Invalid value: "x y": {KEY}',
      f'metadata.finalizers: Invalid value: "a/b/": a valid label key {KEY[10:]} with an optional DNS subdomain prefix and \'/\' (e.g. \'example.com/MyName\')']),
    ("finalizers that contradict", {"finalizers": ["orphan", "foregroundDeletion"]},
     ['metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set']),
    ("an owner without anything", {"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]},
     [f"metadata.ownerReferences[0].{name}: Required value: must not be empty" for name in ("apiVersion", "kind", "name", "uid")]),
    ("owners with a bad apiVersion", {"ownerReferences": [{**OWNER, "apiVersion": "a/b/c"}, {**OWNER, "apiVersion": "a/"}]},
     ['metadata.ownerReferences[0].apiVersion: Invalid value: "a/b/c": must be <group>/<version> or <version>',
      'metadata.ownerReferences[1].apiVersion: Invalid value: "a/": must be <group>/<version> or <version>']),
    ("an event as the owner", {"ownerReferences": [{"uid": "u", **EVENT}]},
     ['metadata.ownerReferences[0]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"n","uid":"u"}: /v1, Kind=Event is disallowed from being an owner']),
    ("two controllers", {"ownerReferences": [{**OWNER, "controller": True}, OWNER, {**OWNER, "name": "m", "controller": True}]},
     ['metadata.ownerReferences: Invalid value: [{"apiVersion":"apps/v1","kind":"Set","name":"n","uid":"u","controller":true},'
      '{"apiVersion":"apps/v1","kind":"Set","name":"n","uid":"u"},{"apiVersion":"apps/v1","kind":"Set","name":"m","uid":"u","controller":true}]: '
      'Only one reference can have Controller set to true. Found "true" in references for Set/n and Set/m']),
    ("bad managers", {"managedFields": [{}, {"operation": "X", "fieldsType": "F", "manager": "é" * 65 + "\n", "subresource": "s" * 257}]},
     ["metadata.managedFields[0].operation: Required value: must not be empty",
      'metadata.managedFields[1].operation: Unsupported value: "X": supported values: "Apply", "Update"',
      'metadata.managedFields[1].fieldsType: Invalid value: "F": must be `FieldsV1`',
      "metadata.managedFields[1].manager: Too long: may not be more than 128 bytes",
      f'metadata.managedFields[1].manager: Invalid value: "{"é" * 65}\\n": invalid character U+000A (at position 130)',
      "metadata.managedFields[1].subresource: Too long: may not be more than 256 bytes"]),
    ("everything, in order",
     {"managedFields": [{}], "finalizers": ["-"], "ownerReferences": [EVENT], "annotations": {"-": ""}, "labels": {"-": ""}, "generation": -1, "name": ""},
     ["metadata.name: Required value: name or generateName is required",
      "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
      f'metadata.labels: Invalid value: "-": {KEY}',
      f'metadata.annotations: Invalid value: "-": {KEY}',
      'metadata.ownerReferences[0]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"n","uid":"u"}: /v1, Kind=Event is disallowed from being an owner',
      f'metadata.finalizers: Invalid value: "-": {KEY}',
      "metadata.managedFields[0].operation: Required value: must not be empty"]),
]  # fmt: skip


@rows(("given", "errors"), [row[1:] for row in INVALID], ids=[row[0] for row in INVALID])
def test_new_metadata_is_validated(given: Object, errors: list[str]) -> None:
    metadata = {"name": "a", **given}
    assert messages(meta.validate_object_meta(metadata, namespaced=False)) == errors
    assert not errors or not meta.is_sound(metadata, namespaced=False)


NAMESPACE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


@pytest.mark.parametrize(
    ("namespace", "namespaced", "errors"),
    [
        ("n", True, []),
        ("", True, ["metadata.namespace: Required value"]),
        ("N", True, [f'metadata.namespace: Invalid value: "N": {NAMESPACE}']),
        ("", False, []),
        ("n", False, ["metadata.namespace: Forbidden: not allowed on this type"]),
    ],
)
def test_a_namespace_is_required_or_forbidden(namespace: str, namespaced: bool, errors: list[str]) -> None:
    given = {"name": "a", "namespace": namespace} if namespace else {"name": "a"}
    assert messages(meta.validate_object_meta(given, namespaced=namespaced)) == errors


def test_the_rule_for_names_is_given() -> None:
    given = {"name": "A.b", "generateName": "AB-"}
    assert messages(meta.validate_object_meta(given, namespaced=False, name_rule=path_segment_name)) == []
    assert len(meta.validate_object_meta(given, namespaced=False, name_rule=label_name)) == 2
    assert messages(
        meta.validate_object_meta({"name": "a%"}, namespaced=False, name_rule=path_segment_name, path="m")
    ) == ["m.name: Invalid value: \"a%\": may not contain '%'"]


OLD = {"name": "a", "uid": "u", "resourceVersion": "1", "generation": 2, "creationTimestamp": NOW}
LATER = "2026-11-21T08:16:43Z"

UPDATES: list[tuple[str, Object, Object, list[str]]] = [
    ("nothing wrong", {}, {}, []),
    ("no resourceVersion", {}, {"resourceVersion": ""}, ['metadata.resourceVersion: Invalid value: "": must be specified for an update']),
    ("a smaller generation", {}, {"generation": 1}, ["metadata.generation: Invalid value: 1: must not be decremented"]),
    ("a negative generation", {"generation": -3}, {"generation": -2}, ["metadata.generation: Invalid value: -2: must be greater than or equal to 0"]),
    ("another name", {}, {"name": "b"}, ['metadata.name: Invalid value: "b": field is immutable']),
    ("a namespace", {}, {"namespace": "n"}, ['metadata.namespace: Invalid value: "n": field is immutable']),
    ("another uid", {}, {"uid": "v"}, ['metadata.uid: Invalid value: "v": field is immutable']),
    ("another creation", {}, {"creationTimestamp": LATER}, [f'metadata.creationTimestamp: Invalid value: "{LATER}": field is immutable']),
    ("no creation", {}, {"creationTimestamp": None}, ["metadata.creationTimestamp: Invalid value: null: field is immutable"]),
    ("a deletion", {}, {"deletionTimestamp": LATER}, [f'metadata.deletionTimestamp: Invalid value: "{LATER}": field is immutable']),
    ("a grace period", {}, {"deletionGracePeriodSeconds": 0}, ["metadata.deletionGracePeriodSeconds: Invalid value: 0: field is immutable"]),
    ("new finalizers", {}, {"finalizers": ["x/y"]}, []),
    ("new finalizers while it is deleted", {"deletionTimestamp": NOW, "finalizers": ["b"]}, {"deletionTimestamp": NOW, "finalizers": ["z", "a", "b", "a"]},
     ['metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"a", "z"}']),
    ("fewer finalizers while it is deleted", {"deletionTimestamp": NOW, "finalizers": ["a", "b"]}, {"deletionTimestamp": NOW, "finalizers": ["b"]}, []),
    ("bad finalizers are not checked here", {}, {"finalizers": ["x y"]}, []),
    ("a bad label", {}, {"labels": {"-": ""}}, [f'metadata.labels: Invalid value: "-": {KEY}']),
    ("a bad name is not checked here", {"name": "A"}, {"name": "A"}, []),
]  # fmt: skip


@rows(("old", "new", "errors"), [row[1:] for row in UPDATES], ids=[row[0] for row in UPDATES])
def test_an_update_is_validated(old: Object, new: Object, errors: list[str]) -> None:
    before, after = {**OLD, **old}, {k: v for k, v in {**OLD, **new}.items() if v is not None}
    assert messages(meta.validate_object_meta_update(after, before)) == errors
    own = meta.validate_update(after, before, namespaced=False).own
    assert messages(own) == errors


@pytest.mark.parametrize("old", [{}, {"uid": ""}])
@pytest.mark.parametrize("new", [{}, {"uid": ""}])
def test_a_missing_uid_is_an_empty_one(old: Object, new: Object) -> None:
    before, after = ({**{k: v for k, v in OLD.items() if k != "uid"}, **one} for one in (old, new))
    assert meta.validate_object_meta_update(after, before) == []


@pytest.mark.parametrize(
    ("new", "generic", "own"),
    [
        ({}, [], []),
        ({"uid": "v"}, ["uid"], ["uid"]),
        ({"labels": {"-": ""}}, ["labels", "labels"], ["labels"]),
        ({"finalizers": ["-"]}, ["finalizers"], []),
        ({"name": "a%"}, ["name", "name"], ["name"]),
        ({"generation": -1}, ["generation", "generation", "generation"], ["generation", "generation"]),
        (
            {"labels": {"-": ""}, "finalizers": ["-"], "uid": "v"},
            ["labels", "finalizers", "uid", "labels"],
            ["uid", "labels"],
        ),
    ],
)
def test_an_update_of_a_custom_resource_is_reported_three_times_over(
    new: Object, generic: list[str], own: list[str]
) -> None:
    errors = meta.validate_update({**OLD, **new}, OLD, namespaced=False)
    assert [error.field.removeprefix("metadata.") for error in errors.generic] == generic
    assert [error.field.removeprefix("metadata.") for error in errors.own] == own


# Warnings

PREFER = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
PREFER_PATH = PREFER.replace("finalizer name", "finalizer name including a path (/)", 1)


@pytest.mark.parametrize(
    ("new", "old", "warnings"),
    [
        ([], None, []),
        (["x.y/z", "orphan", "foregroundDeletion", "kubernetes"], None, []),
        (["foo", "a.b"], None, [f'metadata.finalizers: "a.b": {PREFER_PATH}', f'metadata.finalizers: "foo": {PREFER}']),
        (["foo", "bar"], ["foo"], [f'metadata.finalizers: "bar": {PREFER}']),
        (["foo"], ["foo"], []),
        (["a b"], None, [f'metadata.finalizers: "a b": {KEY}', f'metadata.finalizers: "a b": {PREFER}']),
    ],
)
def test_names_of_new_finalizers_are_commented_on(new: list[str], old: list[str] | None, warnings: list[str]) -> None:
    before = None if old is None else {"finalizers": old}
    assert meta.finalizer_warnings({"finalizers": new}, before) == warnings


def test_owners_are_kept_once() -> None:
    other = {**OWNER, "controller": True}
    metadata: Object = {"ownerReferences": [OWNER, other, dict(OWNER), {**OWNER, "uid": "v"}, dict(other)]}
    warnings = meta.drop_duplicate_owners(metadata, after_admission=False)
    assert metadata["ownerReferences"] == [OWNER, other, {**OWNER, "uid": "v"}]
    assert warnings == [
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may "
        "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u, u"
    ]


def test_owners_that_admission_repeated_are_reported_so() -> None:
    metadata: Object = {"ownerReferences": [OWNER, OWNER]}
    (warning,) = meta.drop_duplicate_owners(metadata, after_admission=True)
    assert warning.startswith(".metadata.ownerReferences contains duplicate entries after mutating admission happens; ")


@pytest.mark.parametrize(
    "metadata", [{}, {"ownerReferences": [OWNER]}, {"ownerReferences": [OWNER, {**OWNER, "uid": "v"}]}]
)
def test_owners_that_differ_stay(metadata: Object) -> None:
    before = json.dumps(metadata)
    assert meta.drop_duplicate_owners(metadata, after_admission=True) == []
    assert json.dumps(metadata) == before


def test_many_owners_of_one_uid_are_no_burden() -> None:
    metadata: Object = {"ownerReferences": [{**OWNER, "name": str(n % 30_000)} for n in range(40_000)]}
    assert len(meta.drop_duplicate_owners(metadata, after_admission=True)) == 1
    assert len(metadata["ownerReferences"]) == 30_000
