"""Random objects of built-in kinds, made from their struct tables, and strategic merge patches.

An object has the right types everywhere; which fields it has, and their values, is random. So most objects are decoded,
and many are valid.
"""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from noxu.go.structs import Field, List, Map, Scalar, Struct, Type, Union, Wire
from noxu.kinds import scheme
from noxu.kinds.kind import Kind

MAX_DEPTH: Final = 9  # structs in structs
FEW: Final = 5  # fields of a struct besides the usual ones
USUAL: Final = frozenset(
    {"spec", "name", "containers", "image", "template", "selector", "matchLabels", "ports", "port", "rules", "subjects",
     "roleRef", "provisioner", "driver", "webhooks", "clientConfig", "accessModes", "resources", "schedule", "jobTemplate"}
)  # fmt: skip
"""Fields that objects of many kinds need: they are hardly ever left out."""
STRINGS: Final = [
    *["a", "b", "a", "b", "c"], "", "A!", "a/b", "1", "10", "100%", "x" * 70, "é", "a.b", "TCP", "ClusterIP", "NodePort", "None",
    "10.0.0.1", "::1", "Always", "Never", "OnFailure", "In", "Exists", "DoesNotExist", "ReadWriteOnce", "* * * * *", "RollingUpdate",
    "Recreate", "/a", "../a", "RuntimeDefault", "kubernetes.io/tls", "Allow", "Pod", "v1", "apps/v1", "0.0.0.0/0", "http://127.0.0.1:1/",
]  # fmt: skip
_NUMBERS: Final = [0, 1, 1, 2, 80, -1, 65536, 2**31 - 1]
_LEAVES: Final[dict[Wire, list[Any]]] = {
    Wire.STRING: STRINGS,
    Wire.BOOL: [True, False],
    Wire.INT32: _NUMBERS,
    Wire.INT64: [*_NUMBERS, 2**63 - 1, -(2**63)],
    Wire.DOUBLE: [0, 1.5, -1e300],
    Wire.BYTES: ["", "YQ==", "/w=="],
    Wire.TIME: ["2026-01-01T00:00:00Z", None],
    Wire.MICRO_TIME: ["2026-01-01T00:00:00.000001Z", None],
    Wire.INT_OR_STRING: [0, 1, "25%", "a", "", -1, 2**31 - 1],
    Wire.JSON: [None, {}, {"a": 1}, {"apiVersion": "v1", "kind": "A"}, [1], "a"],
    Wire.QUANTITY: ["0", "1", "100m", "1Gi", "-1", "1e3", "0.5", "9223372036854775807"],
    Wire.DURATION: ["0s", "5s", "-1h0m0s"],
}
DIRECTIVES: Final[list[tuple[str, list[Any]]]] = [
    ("$patch", ["replace", "delete", "merge", "x", 1, None]),
    ("$retainKeys", [["name"], ["a", "b"], [], "x", [1], None]),
    ("$setElementOrder/", [["a", "b"], [{"name": "a"}], [{"containerPort": 80}], [], "x", [None], [1]]),
    ("$deleteFromPrimitiveList/", [["a"], [1], [], "x", [{"a": 1}], None]),
]  # fmt: skip
_MERGED_LISTS: Final = ["containers", "finalizers", "ports", "env", "volumes", "ownerReferences", "x"]


KINDS: Final = [kind for kind in scheme.served() if "create" in kind.verbs]
COMMON: Final = [
    kind for kind in KINDS if kind.kind in ("Pod", "Deployment", "Service", "Secret", "CronJob", "Ingress")
]


@st.composite
def built_in_objects(draw: st.DrawFn) -> tuple[Kind, Any]:
    """(Its kind, an object) of any built-in kind; half of them of the kinds that are used most."""
    kind = draw(st.sampled_from(COMMON if draw(st.booleans()) else KINDS))
    value = _struct(draw, kind.struct, 0)
    value["metadata"] = {"name": "a"} | (value.get("metadata", {}) if draw(st.integers(0, 3)) == 0 else {})
    return kind, {"apiVersion": kind.api_version, "kind": kind.kind} | value


@st.composite
def strategic_patches(draw: st.DrawFn) -> tuple[Kind, Any]:
    """(The kind that it is for, a part of an object with up to three directives)."""
    kind, value = draw(built_in_objects())
    for _ in range(draw(st.integers(0, 3))):
        objects = _dicts(value)
        place = objects[draw(st.integers(0, len(objects) - 1))]
        name, values = draw(st.sampled_from(DIRECTIVES))
        if name.endswith("/"):
            name += draw(st.sampled_from([*place, *_MERGED_LISTS]))
        place[name] = draw(st.sampled_from(values))
    return kind, value


def _dicts(value: Any) -> list[dict[str, Any]]:
    """A dict and all dicts inside it."""
    found, todo = [], [value]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            found.append(part)
            todo += part.values()
        elif isinstance(part, list):
            todo += part
    return found


def _value(draw: st.DrawFn, kind: Type, depth: int) -> Any:
    match kind:
        case Scalar():
            return draw(st.sampled_from(_LEAVES[kind.wire]))
        case List():
            return [_value(draw, kind.element, depth) for _ in range(draw(st.sampled_from([1, 1, 1, 0, 2])))]
        case Map():
            keys = draw(st.lists(st.sampled_from(STRINGS), max_size=2))
            return {key: _value(draw, kind.element, depth) for key in keys}
        case Union():
            return _value(draw, draw(st.sampled_from(list(kind.choices.values()))).type, depth)
        case Struct():
            return _struct(draw, kind, depth + 1)


def _struct(draw: st.DrawFn, kind: Struct, depth: int) -> dict[str, Any]:
    fields = [field for field in kind.fields.values() if field.inline != "TypeMeta"]
    chosen: list[Field] = [field for field in fields if field.name in USUAL and draw(st.integers(0, 9))]
    if fields and depth < MAX_DEPTH:
        chosen += draw(st.lists(st.sampled_from(fields), max_size=FEW // (1 + depth // 3)))
    if depth >= MAX_DEPTH:
        chosen = [field for field in chosen if isinstance(field.type, Scalar)]
    return {field.name: _value(draw, field.type, depth) for field in chosen}
