"""Random requests: any method, path, query, headers and body, most of them nearly valid.

A body is a valid object of some kind, or a random one of a built-in kind, in which some values are replaced, removed or
repeated; it is written as JSON, YAML, CBOR or protobuf or as a patch, and sometimes some of its bytes are changed. So most
requests get past the first checks.
"""

from __future__ import annotations

import copy
import json
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import yaml
from hypothesis import strategies as st

from noxu.api import protobuf
from noxu.go import cbor_writer
from noxu.go.structs import decode
from noxu.kinds import scheme
from noxu.registry.builtin import built_in_versions, definitions_resource
from noxu.registry.served_resources import ServedResources
from tests.hostile.built_in_objects import built_in_objects, strategic_patches
from tests.hostile.raw_http import ANYTHING, GROUP, custom_resource, definition

SUBRESOURCES: Final = {
    "status": {},
    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
}
SPEC: Final = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer", "default": 1},
        "text": {"type": "string", "maxLength": 10, "pattern": "^[a-z]*$"},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
        },
        "any": ANYTHING,
        "either": {"x-kubernetes-int-or-string": True},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": True, **ANYTHING},
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.text) || self.text != 'no'", "messageExpression": "'not ' + self.text"}
    ],
}
DEFINITIONS: Final[list[Any]] = [
    definition("drops", SPEC, subresources=SUBRESOURCES, selectableFields=[{"jsonPath": ".spec.text"}]),
    definition("lakes", SPEC, scope="Cluster", deprecated=True),
]  # fmt: skip


class Request(NamedTuple):
    """`target` is escaped; `headers` are names and values as they are sent."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None

    def encode(self) -> bytes:
        head = f"{self.method} {self.target} HTTP/1.1\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in self.headers)
        if self.body is not None:
            head += f"Content-Length: {len(self.body)}\r\n"
        return f"{head}\r\n".encode("utf-8", "surrogateescape") + (self.body or b"")


# -- targets ----------------------------------------------------------------------------------------------------------


def _collections() -> list[tuple[str, bool, str]]:
    """(Group and version as in paths, whether it is namespaced, plural) of all resources."""
    served_resources = ServedResources([definitions_resource(), *built_in_versions()])
    found = [
        (
            f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1",
            resource.namespaced,
            resource.plural,
        )
        for resource in served_resources.by_path.values()
    ]
    return sorted(found) + [(f"/apis/{GROUP}/v1", True, "drops"), (f"/apis/{GROUP}/v1", False, "lakes")] * 8


COLLECTIONS: Final = _collections()
DOCUMENTS: Final = [
    "/", "", "*", "/api", "/apis", "/api/v1", f"/apis/{GROUP}", f"/apis/{GROUP}/v1", "/apis/apps", "/version", "/livez",
    "/readyz", "/healthz", "/livez/ping", "/readyz/x", "/openapi/v2", "/openapi/v3", f"/openapi/v3/apis/{GROUP}/v1",
    "/openapi/v3/api/v1", "/openapi/v3/x", "/metrics", "/_noxu/traces", "/_noxu/traces/x", "/_noxu", "/logs", "//", "/api/v1/watch",
    "/api/v1/proxy", "http://127.0.0.1", "http://127.0.0.1/version", "http://[::1/", "ftp://x/y", "a:1", "127.0.0.1:1",
]  # fmt: skip
NAMES: Final = ["a", "b", "default", f"drops.{GROUP}", "..", "a%2fb", "%00", "%ff", "A", "x" * 300, ""]
NAMESPACES: Final = ["default"] * 6 + ["other", "", "%2e%2e", "%ff"]
METHODS: Final = [*["GET"] * 4, *["POST"] * 5, *["PUT"] * 4, *["PATCH"] * 5, *["DELETE"] * 3, "HEAD", "OPTIONS", "CONNECT", "TRACE", "FOO"]  # fmt: skip
PARAMETERS: Final = [
    "limit", "continue", "watch", "timeoutSeconds", "timeout", "resourceVersion", "resourceVersionMatch", "labelSelector",
    "fieldSelector", "dryRun", "fieldManager", "fieldValidation", "force", "pretty", "gracePeriodSeconds", "orphanDependents",
    "propagationPolicy", "includeObject", "allowWatchBookmarks", "sendInitialEvents", "verbose", "exclude", "export", "hash",
    "shardSelector", "ignoreStoreReadErrorWithClusterBreakingPotential", "uid",
]  # fmt: skip
VALUES: Final = [
    "", "0", "1", "-1", "true", "false", "x", "All", "Strict", "Warn", "Ignore", "Exact", "NotOlderThan", "Orphan", "Foreground",
    "a=b", "a in (b,c)", "!a", "metadata.name=a", "metadata.namespace=default", "spec.text=a", "99999999999999999999", "1s", "1e3s",
    "None", "Object", "Metadata", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0", "\udcff", "\x00", "é", "9" * 5000,
    "a" * 200, f"{'9' * 5000}s", f"0.{'9' * 5000}s", f"a>{'9' * 5000}", "10", "=", "a,,b", "(",
]  # fmt: skip


@st.composite
def targets(draw: st.DrawFn) -> str:
    if draw(st.integers(0, 7)) == 0:
        path = draw(st.sampled_from(DOCUMENTS))
    else:
        prefix, namespaced, plural = draw(st.sampled_from(COLLECTIONS))
        path = prefix
        if draw(st.integers(0, 15)) == 0:
            path += "/watch"
        if namespaced != (draw(st.integers(0, 15)) == 0):
            path += f"/namespaces/{draw(st.sampled_from(NAMESPACES))}"
        path += f"/{plural}"
        depth = draw(st.integers(0, 4))
        if depth > 0:
            path += f"/{draw(st.sampled_from(NAMES))}"
        if depth > 2:
            path += draw(
                st.sampled_from(
                    [
                        "/status",
                        "/scale",
                        "/finalize",
                        "/token",
                        "/approval",
                        "/binding",
                        "/eviction",
                        "/ephemeralcontainers",
                        "/resize",
                        "/log",
                        "/x",
                        "/",
                        "/status/x",
                    ]
                )
            )
    return draw(with_query(path))


@st.composite
def with_query(draw: st.DrawFn, path: str) -> str:
    count = draw(st.sampled_from([0, 0, 0, 1, 2, 3]))
    parameter = st.tuples(st.sampled_from(PARAMETERS), st.sampled_from(VALUES))
    parameters = draw(st.lists(parameter, min_size=count, max_size=count))
    query = "&".join(f"{name}={quote(value, errors='surrogateescape')}" for name, value in parameters)
    return f"{path}?{query}" if query else path


# -- bodies -----------------------------------------------------------------------------------------------------------

_RULES: Final = [
    {"apiGroups": [GROUP], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["drops"]}
]
_HOOK: Final = {
    "name": "hook.example.com",
    "rules": _RULES,
    "clientConfig": {"url": "http://127.0.0.1:1/"},
    "failurePolicy": "Ignore",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "matchConditions": [{"name": "a", "expression": "object.metadata.name != 'b'"}],
    "namespaceSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
}  # fmt: skip
_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_MATCH: Final = {"matchConstraints": {"resourceRules": _RULES}, "failurePolicy": "Ignore"}


def _object(api_version: str, kind: str, **fields: Any) -> Any:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **fields}


OBJECTS: Final[list[Any]] = [
    *[custom_resource("Drop", "a", {"replicas": 1, "text": "a", "ports": [{"name": "a"}], "any": {"a": [1, {}]}, "either": 1,
                                    "embedded": {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}})] * 4,
    custom_resource("Lake", "a", {"replicas": 1}, status={"replicas": 1}),
    {**custom_resource("Drop", "a"), "metadata": {
        "name": "a", "generateName": "a-", "namespace": "default", "labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["a/b"],
        "uid": "u", "resourceVersion": "1", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": None,
        "deletionGracePeriodSeconds": 0, "selfLink": "",
        "ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u", "controller": True, "blockOwnerDeletion": True}],
        "managedFields": [{"manager": "m", "operation": "Apply", "apiVersion": f"{GROUP}/v1", "time": "2026-01-01T00:00:00Z",
                           "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:ports": {'k:{"name":"a"}': {".": {}}}}}, "subresource": ""}]}},
    *copy.deepcopy(DEFINITIONS),
    {**definition("seas", SPEC, additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": ".spec.text"}])},
    _object("v1", "ConfigMap", data={"a": "b"}, binaryData={"c": "ZA=="}, immutable=False),
    _object("v1", "Secret", type="Opaque", data={"a": "ZA=="}, stringData={"b": "c"}),
    _object("v1", "Namespace", spec={"finalizers": ["kubernetes"]}),
    _object("v1", "ServiceAccount", secrets=[{"name": "a"}], automountServiceAccountToken=True),
    _object("v1", "Service", spec={"ports": [{"port": 80, "targetPort": "a", "protocol": "TCP"}], "selector": {"a": "b"}}),
    _object("v1", "Event", involvedObject={"namespace": "default"}, reason="a", type="Normal", count=1, lastTimestamp=None),
    _object("v1", "Pod", spec={"containers": [{"name": "a", "image": "b", "resources": {"limits": {"cpu": "1"}}}]}),
    _object("coordination.k8s.io/v1", "Lease", spec={"holderIdentity": "a", "leaseDurationSeconds": 1, "renewTime": None}),
    _object("apps/v1", "Deployment", spec={"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {}}, "replicas": 1}),
    _object("rbac.authorization.k8s.io/v1", "Role", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
    _object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", roleRef={"apiGroup": "", "kind": "ClusterRole", "name": "a"}),
    _object(_ADMISSION, "ValidatingWebhookConfiguration", webhooks=[_HOOK]),
    _object(_ADMISSION, "MutatingWebhookConfiguration", webhooks=[{**_HOOK, "reinvocationPolicy": "IfNeeded"}]),
    _object(_ADMISSION, "ValidatingAdmissionPolicy", spec={
        **_MATCH, "variables": [{"name": "v", "expression": "object.spec"}], "auditAnnotations": [{"key": "a", "valueExpression": "'b'"}],
        "validations": [{"expression": "variables.v.replicas < 5", "messageExpression": "'no'", "reason": "Invalid"}]}),
    _object(_ADMISSION, "ValidatingAdmissionPolicyBinding", spec={"policyName": "a", "validationActions": ["Deny"]}),
    _object(_ADMISSION, "MutatingAdmissionPolicy", spec={
        **_MATCH, "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{spec: Object.spec{replicas: 2}}"}},
                      {"patchType": "JSONPatch", "jsonPatch": {"expression": '[JSONPatch{op: "add", path: "/spec/text", value: "b"}]'}}]}),
    _object(_ADMISSION, "MutatingAdmissionPolicyBinding", spec={"policyName": "a"}),
    _object("autoscaling/v1", "Scale", spec={"replicas": 2}),
    _object("authentication.k8s.io/v1", "TokenRequest", spec={"audiences": ["a"], "expirationSeconds": 3600}),
    _object("authentication.k8s.io/v1", "TokenReview", spec={"token": "a"}),
    _object("authorization.k8s.io/v1", "SelfSubjectAccessReview", spec={"resourceAttributes": {"verb": "get", "resource": "pods"}}),
    _object("authorization.k8s.io/v1", "SubjectAccessReview", spec={"user": "a", "nonResourceAttributes": {"path": "/", "verb": "get"}}),
    {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan", "gracePeriodSeconds": 0, "dryRun": ["All"],
     "preconditions": {"uid": "u", "resourceVersion": "1"}, "orphanDependents": None},
    [{"op": "add", "path": "/spec/text", "value": "b"}, {"op": "test", "path": "/metadata/name", "value": "a"},
     {"op": "move", "from": "/spec/text", "path": "/spec/any"}, {"op": "copy", "from": "/spec", "path": "/spec/any/x"},
     {"op": "replace", "path": "/spec/ports/0", "value": {}}, {"op": "remove", "path": "/spec/ports/-"}],
    {"spec": {"replicas": 3, "text": None}, "metadata": {"labels": {"a": None}, "$patch": "merge"}},
    {"metadata": {"finalizers": ["a/b"], "$deleteFromPrimitiveList/finalizers": ["a/b"], "$setElementOrder/finalizers": ["a/b"]}},
]  # fmt: skip

_DEEP: Final = json.loads("[" * 60 + "]" * 60)
REPLACEMENTS: Final[list[Any]] = [
    None, True, False, 0, 1, -1, 1.5, 1e300, 2**31, 2**63, -(2**63), 2**64, 10**30, "", "a", "x" * 300, "é", "\x00", "\ud800", "..", "a/b",
    "1", "0x1", "1e999", "9" * 5000, f"{'9' * 5000}s", f"{'9' * 5000}Ki", f"-{'0' * 5000}", f"2026-01-01T00:00:00.{'9' * 5000}Z", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00Z", "*", "self.a", "1 +", "object.x.y", "[1,2].map(x, x)", "(", "^(a+)+$",
    ".spec.x", "[", "{", "%", "$ref", "v1", "http://127.0.0.1:99999/", "https://a..b/", "https://[::1/", "Webhook", "None", "Cluster", [], [None],
    [[]], ["a", "a"], [{}], [{"name": "a"}, {"name": "a"}], {}, {"": 1}, {"a": None}, {"kind": "A"}, {"type": "object"}, {"$ref": "x"}, _DEEP,
]  # fmt: skip
KEYS: Final = [
    "",
    "x",
    "a.b",
    "metadata",
    "kind",
    "items",
    "$patch",
    "spec",
    "é",
    "x-kubernetes-list-type",
    "default",
    "pattern",
    "rule",
]
MEDIA_TYPES: Final = [
    *["application/json"] * 30, "application/yaml", *["application/vnd.kubernetes.protobuf"] * 4, *["application/cbor"] * 3, "text/plain", "",
    "application/json; charset=utf-8", "application/json;;", ";", "*/*", "multipart/form-data; boundary=x",
]  # fmt: skip
PATCH_TYPES: Final = [
    "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml",
    "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml", "application/strategic-merge-patch+json",
    "application/apply-patch+cbor", "application/json",
]  # fmt: skip


def _places(value: Any) -> list[tuple[Any, Any]]:
    """(The dict or list, its key or index) of everything inside a value."""
    found: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        parent = todo.pop()
        children = list(parent.items() if isinstance(parent, dict) else enumerate(parent))
        found += [(parent, key) for key, _ in children]
        todo += [child for _, child in children if isinstance(child, (dict, list))]
    return found


@st.composite
def changed(draw: st.DrawFn, valid: Any) -> Any:
    """A copy of a valid object with up to three changes."""
    value = copy.deepcopy(valid)
    for _ in range(draw(st.integers(0, 3))):
        places = _places(value)
        if not places:
            break
        parent, key = places[draw(st.integers(0, len(places) - 1))]
        match draw(st.sampled_from(["replace", "replace", "replace", "remove", "add", "repeat", "swap"])):
            case "replace":
                parent[key] = copy.deepcopy(draw(st.sampled_from(REPLACEMENTS)))
            case "remove":
                del parent[key]
            case "add" if isinstance(parent, dict):
                parent[draw(st.sampled_from(KEYS))] = copy.deepcopy(draw(st.sampled_from(REPLACEMENTS)))
            case "repeat" if isinstance(parent, list):
                parent.append(copy.deepcopy(parent[key]))
            case "swap":
                other, name = places[draw(st.integers(0, len(places) - 1))]
                parent[key] = copy.deepcopy(other[name])
    return value


def _protobuf(value: Any) -> bytes:
    """A body with an object of a built-in kind; empty if the value is none."""
    if not isinstance(value, dict):
        return b""
    struct = scheme.struct_of(str(value.get("apiVersion")), str(value.get("kind")))
    decoded = None if struct is None else decode(struct, value)
    if struct is None or decoded is None or decoded.error:
        return b""
    try:
        return protobuf.encode(struct, decoded.value)
    except (ValueError, OverflowError):  # a surrogate
        return b""


def _cbor(value: Any) -> bytes:
    try:
        return cbor_writer.write(value)
    except (ValueError, OverflowError, TypeError):  # a surrogate, or a number that upstream never writes
        return b""


@st.composite
def written(draw: st.DrawFn, value: Any, media_type: str) -> bytes:
    """The bytes of a value, sometimes with some changes."""
    if "yaml" in media_type and draw(st.booleans()):
        body = yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "surrogatepass")
    else:
        body = json.dumps(value).encode()
    if "protobuf" in media_type:
        body = (
            _protobuf(value)
            or b"k8s\x00\x0a\x0c\x0a\x02v1\x12\x06Secret\x12" + bytes([min(len(body), 127)]) + body[:127]
        )
    if "cbor" in media_type:
        body = _cbor(value) or body
    for _ in range(draw(st.sampled_from([0, 0, 0, 0, 0, 0, 1, 2]))):
        at = draw(st.integers(0, len(body)))
        inserted = draw(
            st.sampled_from(
                [b"", b"\x00", b"\xff", b'"', b"{", b"}", b",", b":", b"&a *a", b"\n---\n", b"1e999", b"\\ud800"]
            )
        )
        body = body[:at] + inserted + body[at + draw(st.sampled_from([0, 1, 1, 5, 10_000])) :]
    return body


def _paths() -> dict[str, str]:
    """The collection of each kind, for namespaced ones that in the default namespace."""
    served_resources = ServedResources([definitions_resource(), *built_in_versions()])
    found = {"Drop": f"/apis/{GROUP}/v1/namespaces/default/drops", "Lake": f"/apis/{GROUP}/v1/lakes"}
    for resource in served_resources.by_path.values():
        prefix = f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1"
        namespace = "/namespaces/default" if resource.namespaced else ""
        found[resource.kind] = f"{prefix}{namespace}/{resource.plural}"
    return found


PATHS: Final = _paths()

# -- requests ---------------------------------------------------------------------------------------------------------

HEADERS: Final = [
    ("Accept", "application/json"), ("Accept", "application/yaml"), ("Accept", "application/vnd.kubernetes.protobuf"), ("Accept", "*/*"),
    ("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"), ("Accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
    ("Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"), ("Accept", ";;,q="), ("Accept", "x/y"),
    ("Accept", "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io"), ("Accept", "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io"),
    ("Accept", "application/cbor"), ("Accept", "application/cbor-seq"), ("Accept", "application/cbor;as=Table;v=v1;g=meta.k8s.io"),
    ("Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"), ("Accept", "application/json;stream=watch"),
    ("Accept-Encoding", "gzip"), ("Accept-Encoding", "gzip;q=x"), ("User-Agent", "Mozilla/5.0"), ("User-Agent", "\udcff/"), ("User-Agent", "kubectl/v1"),
    ("Audit-Id", "x"), ("Audit-Id", "é"), ("Origin", "http://127.0.0.1"), ("Origin", "\udcff"), ("Origin", "http://[::1"), ("Authorization", "Bearer x"),
    ("Authorization", "Basic x"), ("Authorization", "Bearer  x"), ("Authorization", "\udcff"), ("Authorization", "Bearer \udcff"),
    ("Authorization", "Bearer e30.eyJpc3MiOiJrdWJlcm5ldGVzL3NlcnZpY2VhY2NvdW50In0.AA"), ("X-Remote-User", "x"), ("X-Remote-Group", "x"),
    ("Impersonate-User", "x"), ("Impersonate-User", "\udcff"), ("Impersonate-User", "system:serviceaccount:a:b"), ("Impersonate-Group", "x"),
    ("Impersonate-Uid", "x"), ("Impersonate-Extra-%zz", "\udcff"), ("Impersonate-Extra-A%2F", "x"),
    ("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.x"), ("X-Noxu-Trace", "1"), ("X-Noxu-Trace", "x"), ("If-None-Match", '"x"'), ("Connection", "close"),
    ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="), ("Sec-WebSocket-Version", "13"),
    ("Sec-Fetch-Site", "cross-site"), ("Content-Encoding", "gzip"), ("Cookie", "a=b"), ("A" * 300, "b"),
]  # fmt: skip
HOSTS: Final = [*["127.0.0.1"] * 40, "[::1]", "localhost:1", "evil.example", "", "[", "\udcff"]


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Three of four bodies are sent to where objects of their kind are."""
    method = draw(st.sampled_from(METHODS))
    headers = [
        ("Host", draw(st.sampled_from(HOSTS))),
        *draw(st.lists(st.sampled_from(HEADERS), max_size=draw(st.sampled_from([0, 0, 1, 2])))),
    ]
    if method not in ("POST", "PUT", "PATCH") and draw(st.integers(0, 5)):
        return Request(method, draw(targets()), tuple(headers), None)
    media_type = draw(st.sampled_from(PATCH_TYPES if method == "PATCH" else MEDIA_TYPES))
    headers.append(("Content-Type", media_type))
    valid, own = draw(_with_collection(media_type))
    value = draw(changed(valid))
    name = "a"
    if isinstance(valid, dict) and isinstance(valid.get("metadata"), dict):
        name = str(valid["metadata"].get("name", name))
    if isinstance(value, dict) and isinstance(value.get("metadata"), dict) and draw(st.booleans()):
        name = draw(st.sampled_from("abcdefgh"))
        value["metadata"] |= {"name": name, "resourceVersion": None}
    if own is None or not draw(st.integers(0, 3)):
        target = draw(targets())
    else:
        target = own if method == "POST" else f"{own}/{quote(name)}"
        if method != "POST":
            target += draw(st.sampled_from(["", "", "", "/status", "/scale"]))
        target = draw(with_query(target))
    return Request(method, target, tuple(headers), draw(written(value, media_type)))


@st.composite
def _with_collection(draw: st.DrawFn, media_type: str) -> tuple[Any, str | None]:
    """(A valid object or patch, the path of a collection where it may belong)."""
    if "strategic" in media_type or draw(st.booleans()):
        kind, value = draw(strategic_patches() if "strategic" in media_type else built_in_objects())
        return value, PATHS[kind.kind]
    found = draw(st.sampled_from(OBJECTS))
    own = PATHS.get(str(found.get("kind"))) if isinstance(found, dict) else None
    if own is None and draw(st.booleans()):
        own = draw(st.sampled_from([PATHS["Drop"], PATHS["CustomResourceDefinition"], PATHS["ConfigMap"]]))
    return found, own
