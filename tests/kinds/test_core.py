"""Namespaces, ConfigMaps, Secrets and ServiceAccounts: defaults, reset fields and validation."""

from __future__ import annotations

from base64 import b64encode

import pytest

from noxu.api.names import label_name, subdomain_name
from noxu.go.structs import decode
from noxu.kinds.kind import STORED_VERBS, Context, Kind, prepare, selected, written
from noxu.kinds.scheme import by_group_kind
from noxu.values import Object
from tests.rows import rows

NAMESPACE = by_group_kind()["v1", "Namespace"]
CONFIG_MAP = by_group_kind()["v1", "ConfigMap"]
SECRET = by_group_kind()["v1", "Secret"]
SERVICE_ACCOUNT = by_group_kind()["v1", "ServiceAccount"]


def typed(kind: Kind, body: Object) -> Object:
    decoded = decode(kind.struct, {"metadata": {"name": "x"}, **body})
    assert (decoded.error, decoded.unknown) == ("", [])
    value: Object = decoded.value
    kind.default(value)
    return value


def errors(kind: Kind, new: Object, old: Object | None = None, subresource: str = "") -> list[str]:
    before = None if old is None else typed(kind, old)
    return [str(error) for error in kind.validate(typed(kind, new), before, Context(subresource))]


# Namespaces


def test_a_namespace_is_labelled_with_its_name_and_active() -> None:
    value = written(NAMESPACE, typed(NAMESPACE, {"metadata": {"name": "team-a", "labels": {"z": "1"}}}))
    assert value == {
        "metadata": {"name": "team-a", "labels": {"kubernetes.io/metadata.name": "team-a", "z": "1"}},
        "spec": {},
        "status": {"phase": "Active"},
    }


def test_the_name_label_of_a_namespace_cannot_be_changed() -> None:
    value = typed(NAMESPACE, {"metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "b"}}})
    assert value["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a"}


def test_a_namespace_without_a_name_yet_has_no_label_yet() -> None:
    value = typed(NAMESPACE, {"metadata": {"generateName": "a-"}})
    assert "labels" not in value["metadata"]
    value["metadata"]["name"] = "a-12345"
    prepare(NAMESPACE, value, None)
    assert value["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a-12345"}


NEW_NAMESPACES = [
    ("nothing sent", {}, ["kubernetes"], "Active"),
    ("a status sent", {"status": {"phase": "Terminating"}}, ["kubernetes"], "Active"),
    ("a finalizer of one's own", {"spec": {"finalizers": ["a.b/c"]}}, ["a.b/c", "kubernetes"], "Active"),
    ("the finalizer sent", {"spec": {"finalizers": ["kubernetes", "a.b/c"]}}, ["kubernetes", "a.b/c"], "Active"),
]


@pytest.mark.parametrize(
    ("body", "finalizers", "phase"), [row[1:] for row in NEW_NAMESPACES], ids=[row[0] for row in NEW_NAMESPACES]
)
def test_new_namespaces(body: Object, finalizers: list[str], phase: str) -> None:
    value = typed(NAMESPACE, body)
    prepare(NAMESPACE, value, None)
    assert value["spec"]["finalizers"] == finalizers
    assert value["status"] == {"phase": phase}
    assert "generation" not in value["metadata"]


KEPT_OF_NAMESPACES = [
    ("an update keeps finalizers and status", "", ["kubernetes"], "Active"),
    ("/finalize changes finalizers", "finalize", [], "Active"),
    ("/status changes the status", "status", ["kubernetes"], "Terminating"),
]


@pytest.mark.parametrize(
    ("subresource", "finalizers", "phase"),
    [row[1:] for row in KEPT_OF_NAMESPACES],
    ids=[row[0] for row in KEPT_OF_NAMESPACES],
)
def test_updated_namespaces(subresource: str, finalizers: list[str], phase: str) -> None:
    old = typed(NAMESPACE, {"spec": {"finalizers": ["kubernetes"]}})
    new = typed(NAMESPACE, {"status": {"phase": "Terminating"}})
    prepare(NAMESPACE, new, old, Context(subresource))
    assert new["spec"].get("finalizers", []) == finalizers
    assert new["status"]["phase"] == phase


DELETED = {"metadata": {"name": "x", "deletionTimestamp": "2024-01-01T00:00:00Z"}}
NAMESPACES: list[tuple[str, Object, str, list[str]]] = [
    ("standard finalizers", {"spec": {"finalizers": ["kubernetes", "orphan", "foregroundDeletion", "a.b/c"]}}, "", []),
    (
        "a finalizer without domain",
        {"spec": {"finalizers": ["mine"]}},
        "",
        ['spec.finalizers: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified'],
    ),
    (
        "a finalizer without domain, through /finalize",
        {"spec": {"finalizers": ["kubernetes", "mine"]}},
        "finalize",
        [
            'spec.finalizers[1]: Invalid value: "mine": '
            "name is neither a standard finalizer name nor is it fully qualified"
        ],
    ),
    (
        "a finalizer that is no name",
        {"spec": {"finalizers": ["a.b/"]}},
        "",
        [
            'spec.finalizers: Invalid value: "a.b/": name part must be non-empty',
            "spec.finalizers: Invalid value: \"a.b/\": name part must consist of alphanumeric characters, '-', '_' or "
            "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
            "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ],
    ),
    (
        "a namespace in phase Terminating without a deletion timestamp",
        {"status": {"phase": "Terminating"}},
        "status",
        ["status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"],
    ),
    (
        "a namespace in phase Active with a deletion timestamp",
        {**DELETED, "status": {"phase": "Active"}},
        "status",
        ["status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"],
    ),
    ("a deleted namespace that terminates", {**DELETED, "status": {"phase": "Terminating"}}, "status", []),
    ("the phase is not checked on an update", {"status": {"phase": "Odd"}}, "", []),
]


@pytest.mark.parametrize(
    ("body", "subresource", "messages"), [row[1:] for row in NAMESPACES], ids=[row[0] for row in NAMESPACES]
)
def test_namespaces_are_validated(body: Object, subresource: str, messages: list[str]) -> None:
    assert errors(NAMESPACE, body, {}, subresource) == messages


def test_properties_of_the_namespace_kind() -> None:
    assert (NAMESPACE.plural, NAMESPACE.singular, NAMESPACE.list_kind) == ("namespaces", "namespace", "NamespaceList")
    assert NAMESPACE.verbs == tuple(verb for verb in STORED_VERBS if verb != "deletecollection")
    assert {subresource.name: subresource.verbs for subresource in NAMESPACE.subresources} == {
        "finalize": ("update",),
        "status": ("get", "patch", "update"),
    }
    assert (NAMESPACE.has_status, NAMESPACE.namespaced, NAMESPACE.name_rule) == (True, False, label_name)
    assert selected(NAMESPACE, {"status": {"phase": "Active"}}) == {"status.phase": "Active"}
    assert selected(NAMESPACE, {}) == {"status.phase": ""}


# ConfigMaps

BAD_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
IMMUTABLE = "Forbidden: field is immutable when `immutable` is set"
MIB = 1024 * 1024


def base64(size: int) -> str:
    return b64encode(bytes(size)).decode()


CONFIG_MAPS: list[tuple[str, Object, Object | None, list[str]]] = [
    ("an empty one", {}, None, []),
    ("all sorts of keys", {"data": {"a": "", ".b": "", "c-d_E.9": ""}}, None, []),
    ("two dots in front", {"data": {"..a": ""}}, None, ["data[..a]: Invalid value: \"..a\": must not start with '..'"]),
    ("an empty key", {"data": {"": ""}}, None, [f'data[]: Invalid value: "": {BAD_KEY}']),
    ("a key with a slash", {"binaryData": {"a/b": ""}}, None, [f'binaryData[a/b]: Invalid value: "a/b": {BAD_KEY}']),
    ("dots", {"data": {".": "", "..": ""}}, None, ["data[.]: Invalid value: \".\": must not be '.'", "data[..]: Invalid value: \"..\": must not be '..'"]),
    ("a key too long", {"data": {"a" * 254: ""}}, None, [f'data[{"a" * 254}]: Invalid value: "{"a" * 254}": must be no more than 253 characters']),
    ("a key on both sides", {"data": {"a": ""}, "binaryData": {"a": ""}}, None, ['data[a]: Invalid value: "a": duplicate of key present in binaryData']),
    ("one byte too much, both sides counted", {"data": {"a": "x" * (MIB - 2)}, "binaryData": {"b": base64(3)}}, None, ["[]: Too long: may not be more than 1048576 bytes"]),
    ("as much as may be", {"data": {"a": "é" * (MIB // 2 - 1)}, "binaryData": {"b": base64(2)}}, None, []),
    ("bytes count, not characters", {"data": {"a": "é" * (MIB // 2 + 1)}}, None, ["[]: Too long: may not be more than 1048576 bytes"]),
    ("a change", {"data": {"a": "2"}}, {"data": {"a": "1"}}, []),
    ("becoming immutable", {"data": {"a": "2"}, "immutable": True}, {"data": {"a": "1"}, "immutable": False}, []),
    ("immutable, and the same", {"data": {"a": "1"}, "immutable": True, "metadata": {"name": "x", "labels": {"a": "b"}}}, {"data": {"a": "1"}, "immutable": True}, []),
    ("immutable, and changed", {"data": {"a": "2"}, "binaryData": {"b": "AA=="}, "immutable": True}, {"data": {"a": "1"}, "immutable": True}, [f"data: {IMMUTABLE}", f"binaryData: {IMMUTABLE}"]),
    ("no longer immutable", {"data": {"a": "1"}}, {"data": {"a": "1"}, "immutable": True}, [f"immutable: {IMMUTABLE}"]),
]  # fmt: skip


@rows(("new", "old", "messages"), [row[1:] for row in CONFIG_MAPS], ids=[row[0] for row in CONFIG_MAPS])
def test_config_maps_are_validated(new: Object, old: Object | None, messages: list[str]) -> None:
    assert errors(CONFIG_MAP, new, old) == messages


# Secrets


def test_a_secret_is_opaque_by_default() -> None:
    assert typed(SECRET, {})["type"] == "Opaque"
    assert typed(SECRET, {"type": ""})["type"] == "Opaque"
    assert typed(SECRET, {"type": "mine"})["type"] == "mine"


def test_text_of_a_secret_becomes_data_and_wins() -> None:
    value = typed(SECRET, {"data": {"a": "QQ==", "b": "Qg=="}, "stringData": {"b": "bé", "c": ""}})
    assert written(SECRET, value) == {
        "metadata": {"name": "x"},
        "data": {"a": "QQ==", "b": "YsOp", "c": ""},
        "type": "Opaque",
    }


def test_defaulting_a_secret_twice_changes_nothing() -> None:
    value = typed(SECRET, {"stringData": {"a": "b"}})
    once = written(SECRET, value)
    SECRET.default(value)
    assert written(SECRET, value) == once


def secret(kind: str, annotations: Object | None = None, **text: str) -> Object:
    names = {name.replace("__", "-").replace("_", "."): value for name, value in text.items()}
    metadata = {"name": "x", "annotations": annotations or {}}
    return {"type": f"kubernetes.io/{kind}", "stringData": names, "metadata": metadata}


def config(content: str) -> Object:
    return secret("dockerconfigjson") | {"stringData": {".dockerconfigjson": content}}


REDACTED = 'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": '
ACCOUNT = "kubernetes.io/service-account.name"
SECRETS: list[tuple[str, Object, list[str]]] = [
    ("TLS with both", secret("tls", tls_crt="", tls_key=""), []),
    ("TLS with nothing", secret("tls"), ["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
    ("TLS without its key", secret("tls", tls_crt="x"), ["data[tls.key]: Required value"]),
    ("a docker config", config('{"auths": {}}'), []),
    ("a docker config that is null", config("null"), []),
    ("no docker config", secret("dockerconfigjson"), ["data[.dockerconfigjson]: Required value"]),
    ("an old docker config that is missing", secret("dockercfg"), ["data[.dockercfg]: Required value"]),
    ("a docker config cut off", config("{"), [REDACTED + "unexpected end of JSON input"]),
    ("an empty docker config", config(""), [REDACTED + "unexpected end of JSON input"]),
    ("a docker config that is a list", config("[]"), [REDACTED + "json: cannot unmarshal array into Go value of type map[string]interface {}"]),
    ("basic auth with a user", secret("basic-auth", username=""), []),
    ("basic auth with a password", secret("basic-auth", password=""), []),
    ("basic auth with nothing", secret("basic-auth", other="x"), ["data[username]: Required value", "data[password]: Required value"]),
    ("SSH with its key", secret("ssh-auth", ssh__privatekey="x"), []),
    ("SSH with an empty key", secret("ssh-auth", ssh__privatekey=""), ["data[ssh-privatekey]: Required value"]),
    ("a token of an account", secret("service-account-token", {ACCOUNT: "me"}), []),
    ("a token without a service account", secret("service-account-token"), [f"metadata.annotations[{ACCOUNT}]: Required value"]),
    ("a type of one's own", {"type": "helm.sh/release.v1"}, []),
    ("a bad key", {"data": {"a b": ""}}, [f'data[a b]: Invalid value: "a b": {BAD_KEY}']),
    ("as much as may be", {"data": {"a": base64(MIB)}}, []),
    ("one byte too much", {"data": {"a": base64(MIB - 1), "b": base64(2)}}, ["data: Too long: may not be more than 1048576 bytes"]),
]  # fmt: skip


@rows(("body", "messages"), [row[1:] for row in SECRETS], ids=[row[0] for row in SECRETS])
def test_secrets_are_validated(body: Object, messages: list[str]) -> None:
    assert errors(SECRET, body) == messages


CHANGED_SECRETS: list[tuple[str, Object, Object, list[str]]] = [
    ("data", {"data": {"a": "QQ=="}}, {"data": {"a": "Qg=="}}, []),
    ("its type", {"type": "b"}, {"type": "a"}, ['type: Invalid value: "b": field is immutable']),
    ("its type left out", {}, {"type": "a"}, ['type: Invalid value: "Opaque": field is immutable']),
    ("data once it is immutable", {"stringData": {"a": "B"}, "immutable": True}, {"data": {"a": "QQ=="}, "immutable": True}, [f"data: {IMMUTABLE}"]),
    ("the same data written as text", {"stringData": {"a": "A"}, "immutable": True}, {"data": {"a": "QQ=="}, "immutable": True}, []),
    ("that it is immutable", {"immutable": False}, {"immutable": True}, [f"immutable: {IMMUTABLE}"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("new", "old", "messages"), [row[1:] for row in CHANGED_SECRETS], ids=[row[0] for row in CHANGED_SECRETS]
)
def test_updates_of_secrets_are_validated(new: Object, old: Object, messages: list[str]) -> None:
    assert errors(SECRET, new, old) == messages


def test_secrets_are_selected_by_type() -> None:
    assert selected(SECRET, typed(SECRET, {"type": "helm.sh/release.v1"})) == {"type": "helm.sh/release.v1"}


def test_secrets_may_be_updated_without_a_resource_version() -> None:
    assert SECRET.unconditional_update  # helm does it
    assert not SECRET.create_on_update


# ServiceAccounts


def test_an_account_remembers_only_the_names_of_its_secrets() -> None:
    value = typed(SERVICE_ACCOUNT, {"secrets": [{"kind": "Secret", "name": "a", "uid": "u"}, {"kind": "Secret"}]})
    prepare(SERVICE_ACCOUNT, value, None)
    assert value["secrets"] == [{"name": "a"}, {}]


ADVICE = (
    "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces "
    "to isolate access to mounted secrets"
)


def test_a_deprecated_annotation_is_reported_when_it_comes() -> None:
    plain = typed(SERVICE_ACCOUNT, {})
    noted = typed(SERVICE_ACCOUNT, {"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}})
    assert SERVICE_ACCOUNT.warnings(noted, None) == [ADVICE]
    assert SERVICE_ACCOUNT.warnings(noted, plain) == [ADVICE]
    assert SERVICE_ACCOUNT.warnings(noted, noted) == []
    assert SERVICE_ACCOUNT.warnings(plain, noted) == []


def test_an_account_gives_tokens() -> None:
    (token,) = SERVICE_ACCOUNT.subresources
    assert token.body is not None
    assert (token.name, token.verbs, token.body.name, token.body_group) == (
        "token",
        ("create",),
        "TokenRequest",
        "authentication.k8s.io",
    )
    assert not SERVICE_ACCOUNT.has_status


@pytest.mark.parametrize("kind", [CONFIG_MAP, SECRET, SERVICE_ACCOUNT], ids=lambda kind: kind.kind)
def test_the_other_kinds_of_core_are_plain(kind: Kind) -> None:
    assert (kind.namespaced, kind.verbs, kind.name_rule) == (True, STORED_VERBS, subdomain_name)
    assert (kind.generation, kind.lifetime, kind.categories) == ((), 0, ())
    assert errors(kind, {}, {}) == []
