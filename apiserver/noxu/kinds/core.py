"""core/v1: Namespace, ConfigMap, Secret, ServiceAccount. (`events` and `services` have the others.)

The rules are those of k8s.io/kubernetes: pkg/apis/core/v1/{defaults,conversion}.go, pkg/apis/core/validation and the
strategies of pkg/registry/core.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import qualified_name
from noxu.expressions import expression
from noxu.go import base64 as go_base64
from noxu.go import json as go_json
from noxu.go.structs import (
    json_type,
)
from noxu.kinds.facts import struct
from noxu.kinds.kind import Context, Rules
from noxu.values import Object, equal

NAMESPACE: Final = struct("core/v1.Namespace")
CONFIG_MAP: Final = struct("core/v1.ConfigMap")
LIST: Final = struct("core/v1.List")

# Namespaces

NAME_LABEL: Final = "kubernetes.io/metadata.name"
NAMESPACE_FINALIZER: Final = "kubernetes"
_STANDARD_FINALIZERS: Final = (NAMESPACE_FINALIZER, "foregroundDeletion", "orphan")


def _default_namespace(value: Object) -> None:
    metadata = value["metadata"]
    if metadata.get("name"):
        metadata.setdefault("labels", {})[NAME_LABEL] = metadata["name"]


def _complete_namespace(new: Object, old: Object | None, context: Context) -> None:  # noqa: ARG001
    if old is not None:
        return
    finalizers = new.setdefault("spec", {}).setdefault("finalizers", [])
    if NAMESPACE_FINALIZER not in finalizers:
        finalizers.append(NAMESPACE_FINALIZER)
    _default_namespace(new)  # the name may have been generated after defaulting


def _validate_namespace(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    finalizers = new.get("spec", {}).get("finalizers") or ()
    if context.subresource == "finalize":
        indexed = enumerate(finalizers)
        return [
            error
            for n, finalizer in indexed
            for error in _finalizer_errors(field.index("spec.finalizers", n), finalizer)
        ]
    if context.subresource != "status":
        return [error for finalizer in finalizers for error in _finalizer_errors("spec.finalizers", finalizer)]
    phase = new.get("status", {}).get("phase", "")
    deleted = bool(new["metadata"].get("deletionTimestamp"))
    if phase == ("Terminating" if deleted else "Active"):
        return []
    rule = (
        "may only be 'Terminating' if `deletionTimestamp` is not empty"
        if deleted
        else "may only be 'Active' if `deletionTimestamp` is empty"
    )
    return [field.invalid("status.Phase", as_json(phase), rule)]


def _finalizer_errors(path: Path, name: str) -> list[FieldError]:
    errors = [field.invalid(path, name, text) for text in qualified_name(name)]
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        rule = "name is neither a standard finalizer name nor is it fully qualified"
        errors.append(field.invalid(path, name, rule))
    return errors


# ConfigMaps and Secrets

MAX_DATA: Final = 1024 * 1024  # upstream's MaxSecretSize, for ConfigMaps, too
_WHOLE_OBJECT: Final = "[]"  # upstream's field.NewPath("") as text
_IMMUTABLE: Final = "field is immutable when `immutable` is set"
_is_key: Final = expression("[-._a-zA-Z0-9]+")


def _key_errors(name: str) -> list[str]:
    """util/validation's IsConfigMapKey."""
    errors = ["must be no more than 253 characters"] if len(name.encode("utf-8", "surrogatepass")) > 253 else []
    if not _is_key.fullmatch(name):
        errors.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    if name in (".", ".."):
        errors.append(f"must not be '{name}'")
    elif name.startswith(".."):
        errors.append("must not start with '..'")
    return errors


def _keys(path: Path, names: Iterable[str]) -> list[FieldError]:
    return [field.invalid(field.key(path, name), name, text) for name in sorted(names) for text in _key_errors(name)]


def _immutable_errors(new: Object, old: Object | None, names: tuple[str, ...]) -> list[FieldError]:
    """Errors about changes once `immutable` is true, to it and to these fields."""
    if old is None or not old.get("immutable"):
        return []
    errors = [] if new.get("immutable") else [field.forbidden("immutable", _IMMUTABLE)]
    changed = (name for name in names if not equal(new.get(name) or {}, old.get(name) or {}))
    return errors + [field.forbidden(name, _IMMUTABLE) for name in changed]


def _validate_config_map(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    text: dict[str, str] = new.get("data") or {}
    binary: dict[str, str] = new.get("binaryData") or {}
    errors = _immutable_errors(new, old, ("data", "binaryData"))
    for name in sorted(text):
        errors += _keys("data", [name])
        if name in binary:
            errors.append(field.invalid(field.key("data", name), name, "duplicate of key present in binaryData"))
    errors += _keys("binaryData", binary)
    size = sum(len(content.encode("utf-8", "replace")) for content in text.values()) + _size(binary)
    if size > MAX_DATA:
        errors.append(field.too_long(_WHOLE_OBJECT, MAX_DATA))
    return errors


def _size(data: dict[str, str]) -> int:
    return sum(go_base64.decoded_length(content or "") for content in data.values())


OPAQUE: Final = "Opaque"
SERVICE_ACCOUNT_TOKEN: Final = "kubernetes.io/service-account-token"  # noqa: S105
_SERVICE_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
_REQUIRED_KEYS: Final = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_JSON_KEYS: Final = (".dockercfg", ".dockerconfigjson")
_BASIC_AUTH: Final = "kubernetes.io/basic-auth"
_SSH_AUTH: Final = "kubernetes.io/ssh-auth"


def _default_secret(value: Object) -> None:
    """stringData is write-only: it is merged into data, and takes precedence."""
    text: dict[str, str] = value.pop("stringData", None) or {}
    if text:
        encoded = {name: go_base64.encode(content.encode("utf-8", "replace")) for name, content in text.items()}
        value["data"] = (value.get("data") or {}) | encoded


def _validate_secret(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    data: dict[str, str] = new.get("data") or {}
    kind: str = new.get("type", "")
    errors: list[FieldError] = []
    if old is not None and kind != old.get("type", ""):
        errors.append(field.invalid("type", as_json(kind), "field is immutable"))
    errors += _immutable_errors(new, old, ("data",))
    errors += _keys("data", data)
    if _size(data) > MAX_DATA:
        errors.append(field.too_long("data", MAX_DATA))
    return errors + _secret_type_errors(kind, data, new["metadata"].get("annotations") or {})


def _secret_type_errors(kind: str, data: dict[str, str], annotations: dict[str, str]) -> list[FieldError]:
    """Errors about the requirements of well-known types."""
    if kind == SERVICE_ACCOUNT_TOKEN and not annotations.get(_SERVICE_ACCOUNT_NAME):
        return [field.required(field.key("metadata.annotations", _SERVICE_ACCOUNT_NAME))]
    if kind == _BASIC_AUTH and "username" not in data and "password" not in data:
        return [field.required(field.key("data", name)) for name in ("username", "password")]
    if kind == _SSH_AUTH and not data.get("ssh-privatekey"):
        return [field.required("data[ssh-privatekey]")]
    errors = []
    for name in _REQUIRED_KEYS.get(kind, ()):
        path = field.key("data", name)
        if name not in data:
            errors.append(field.required(path))
        elif name in _JSON_KEYS and (error := _object_error(go_base64.decode(data[name] or ""))):
            errors.append(field.invalid(path, "<secret contents redacted>", error))
    return errors


def _object_error(content: bytes) -> str:
    """encoding/json's error when it decodes into a map, "" if there is none."""
    try:
        value = go_json.read(content).value
    except go_json.JsonSyntaxError as error:
        return str(error)
    if value is None or isinstance(value, dict):
        return ""
    return f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}"


# ServiceAccounts

_MOUNTABLE_SECRETS: Final = "kubernetes.io/enforce-mountable-secrets"


def _complete_service_account(new: Object, old: Object | None, context: Context) -> None:  # noqa: ARG001
    if new.get("secrets"):
        new["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in new["secrets"]]


def _warn_service_account(new: Object, old: Object | None) -> list[str]:
    """The warning about a deprecated annotation, only when it is added."""
    before = (old or {}).get("metadata", {}).get("annotations") or {}
    if _MOUNTABLE_SECRETS not in (new["metadata"].get("annotations") or {}) or _MOUNTABLE_SECRETS in before:
        return []
    advice = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    return [f"metadata.annotations[{_MOUNTABLE_SECRETS}]: {advice}"]


RULES: Final = {
    "ConfigMap": Rules(validate=_validate_config_map),
    "Namespace": Rules(_default_namespace, _complete_namespace, _validate_namespace),
    "Secret": Rules(_default_secret, validate=_validate_secret),
    "ServiceAccount": Rules(complete=_complete_service_account, warnings=_warn_service_account),
}
