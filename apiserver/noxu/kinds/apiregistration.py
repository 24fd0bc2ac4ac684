"""apiregistration.k8s.io/v1: APIService. Requests are not forwarded to other servers.

The rules are those of k8s.io/kube-aggregator pkg/apis/apiregistration/validation. The condition `Available` is the one
that upstream's controllers write: a local APIService is always available; one with a service never is, here.
"""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, as_json
from noxu.api.names import dns1035_label, dns1123_subdomain
from noxu.go import base64 as go_base64
from noxu.kinds.checks import Errors
from noxu.kinds.kind import Context, Rules
from noxu.values import Object

_MAX_GROUP_PRIORITY: Final = 20_000
_MAX_VERSION_PRIORITY: Final = 1000
_STATUSES: Final = ["True", "False", "Unknown"]
_LOCAL: Final = ("True", "Local", "Local APIServices are always available")
_REMOTE: Final = (
    "False",
    "NotSupported",
    "noxu does not forward requests to other API servers; "
    "`noxu serve --kinds FILE` serves the kinds of an OpenAPI document",
)


def _complete(new: Object, old: Object | None, context: Context) -> None:
    if context.subresource:
        return
    status, reason, message = _LOCAL if (new.get("spec") or {}).get("service") is None else _REMOTE
    conditions: list[Object] = (new.get("status") or {}).get("conditions") or []
    current = next((condition for condition in conditions if condition.get("type") == "Available"), {})
    if old is not None and current.get("status") == status:
        return
    available = {
        "type": "Available",
        "status": status,
        "lastTransitionTime": context.now,
        "reason": reason,
        "message": message,
    }
    other_conditions = [condition for condition in conditions if condition.get("type") != "Available"]
    new.setdefault("status", {})["conditions"] = [*other_conditions, available]


def _validate(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    return list(_status(new) if context.subresource else _spec(new.get("spec") or {}))


def _spec(spec: Object) -> Errors:
    group, version = spec.get("group", ""), spec.get("version", "")
    if not group and version != "v1":
        rule = "only v1 may have an empty group and it better be legacy kube"
        yield field.required("spec.group", rule)
    if group:
        yield from (field.invalid("spec.group", group, text) for text in dns1123_subdomain(group))
    yield from (field.invalid("spec.version", version, text) for text in dns1035_label(version))
    for name, limit in (("groupPriorityMinimum", _MAX_GROUP_PRIORITY), ("versionPriority", _MAX_VERSION_PRIORITY)):
        value = spec.get(name, 0)
        if not 0 < value <= limit:
            yield field.invalid(f"spec.{name}", value, f"must be positive and less than {limit}")
    service, is_insecure = spec.get("service"), bool(spec.get("insecureSkipTLSVerify"))
    bundle_size = go_base64.decoded_length(spec.get("caBundle") or "")
    if service is None:
        if bundle_size:
            yield field.invalid("spec.caBundle", f"{bundle_size} bytes", "local APIServices may not have a caBundle")
        if is_insecure:
            rule = "local APIServices may not have insecureSkipTLSVerify"
            yield field.invalid("spec.insecureSkipTLSVerify", True, rule)
        return
    for name in ("namespace", "name"):
        if not service.get(name):
            yield field.required(f"spec.service.{name}")
    port = service.get("port")
    if port is not None and not 1 <= port <= 65535:
        rule = "port is not valid: must be between 1 and 65535, inclusive"
        yield field.invalid("spec.service.port", port, rule)
    if is_insecure and bundle_size:
        yield field.invalid("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present")


def _status(new: Object) -> Errors:
    for n, condition in enumerate((new.get("status") or {}).get("conditions") or ()):
        if condition.get("status", "") not in _STATUSES:
            path = f"status.conditions[{n}].status"
            yield field.not_supported(path, as_json(condition.get("status", "")), _STATUSES)


RULES: Final = {"APIService": Rules(complete=_complete, validate=_validate)}
