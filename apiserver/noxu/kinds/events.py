"""Events: core/v1 and events.k8s.io/v1 are two views of the same stored objects.

The core view is stored. An event created through core/v1 only has to agree with its namespace; events.k8s.io/v1 has newer
and stricter rules, and later only the series may change (pkg/apis/core/validation/events.go). Errors name fields of the
core view for both, with one exception: see `_CONTROLLER`.
"""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, as_json
from noxu.api.names import dns1123_subdomain, qualified_name
from noxu.kinds.kind import Context, Rules
from noxu.values import Json, Object, equal

LIFETIME: Final = 60 * 60
"""Seconds that an event is kept; upstream's --event-ttl."""


CORE: Final = "v1"
EVENTS: Final = "events.k8s.io/v1"

_SAME: Final = ("metadata", "eventTime", "series", "reportingInstance", "action", "reason", "related", "type")
_OTHER_NAMES: Final = {
    "reportingController": "reportingComponent",
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""Names in events.k8s.io/v1 and those of the same fields in core/v1."""


def to_core(event: Object) -> Object:
    """The core view of an event of events.k8s.io/v1."""
    return _renamed(event, CORE, _OTHER_NAMES)


def from_core(event: Object) -> Object:
    """The events.k8s.io/v1 view of an event of core/v1."""
    return _renamed(event, EVENTS, {old: new for new, old in _OTHER_NAMES.items()})


def _renamed(event: Object, api_version: str, names: dict[str, str]) -> Object:
    head = {"kind": "Event", "apiVersion": api_version}
    same = {name: event[name] for name in _SAME if name in event}
    return head | same | {new: event[old] for old, new in names.items() if old in event}


_MAX_SHORT: Final = 128
_MAX_MESSAGE: Final = 1024
_SYSTEM_NAMESPACES: Final = ("default", "kube-system")
_IMMUTABLE: Final = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason", "type",
    "eventTime", "action", "related", "reportingComponent", "reportingInstance",
)  # fmt: skip
_CONTROLLER: Final = "reportingController"  # upstream's internal name; core/v1's is reportingComponent


def _validate_core(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    return _basic_errors(new, "reportingComponent")


def _validate_new(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    event = to_core(new)
    errors = _basic_errors(event, _CONTROLLER)
    return errors + (_strict_errors(event) if old is None else _change_errors(event, to_core(old)))


def _basic_errors(event: Object, controller: str) -> list[FieldError]:
    namespace = event["metadata"].get("namespace", "")
    about = event.get("involvedObject", {}).get("namespace", "")
    errors = []
    if not event.get("eventTime"):  # an event without the newer fields
        is_mismatch = about != namespace and (about or namespace not in ("", "default"))
    else:
        is_mismatch = not about and namespace not in _SYSTEM_NAMESPACES
    if is_mismatch:
        errors.append(field.invalid("involvedObject.namespace", about, "does not match event.namespace"))
    if event.get("eventTime"):
        reporter = event.get("reportingComponent", "")
        if not reporter:
            errors.append(field.required(controller))
        errors += [field.invalid(controller, reporter, text) for text in qualified_name(reporter)]
        for name in ("reportingInstance", "action", "reason"):
            errors += _length_errors(name, event.get(name, ""), _MAX_SHORT, required=True)
        errors += _length_errors("message", event.get("message", ""), _MAX_MESSAGE)
    return errors + [field.invalid("namespace", namespace, text) for text in dns1123_subdomain(namespace)]


def _length_errors(name: str, value: str, limit: int, *, required: bool = False) -> list[FieldError]:
    if required and not value:
        return [field.required(name)]
    if len(value.encode("utf-8", "replace")) > limit:
        return [field.invalid(name, "", f"can have at most {limit} characters")]
    return []


def _series_errors(event: Object) -> list[FieldError]:
    series = event.get("series")
    if series is None:
        return []
    errors = []
    if series.get("count", 0) < 2:
        errors.append(field.invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(field.required("series.lastObservedTime"))
    return errors


def _strict_errors(event: Object) -> list[FieldError]:
    """The errors of a created events.k8s.io/v1 event: it has a time and a type, and no deprecated fields."""
    errors = _series_errors(event)
    if not event.get("eventTime"):
        errors.append(field.required("eventTime"))
    kind = event.get("type", "")
    if kind not in ("Normal", "Warning"):
        errors.append(field.invalid("type", "", f"has invalid value: {kind}"))
    present = (name for name in ("firstTimestamp", "lastTimestamp", "count", "source") if event.get(name))
    return errors + [field.invalid(name, "", "needs to be unset") for name in present]


def _change_errors(new: Object, old: Object) -> list[FieldError]:
    errors = [] if equal(new.get("series"), old.get("series")) else _series_errors(new)
    for name in _IMMUTABLE:
        if not equal(new.get(name) or None, old.get(name) or None):
            shown = _CONTROLLER if name == "reportingComponent" else name
            errors.append(field.invalid(shown, _shown(name, new.get(name)), "field is immutable"))
    return errors


def _shown(name: str, value: Json) -> Json:
    """A value as upstream's internal struct prints it: all fields, with their Go names."""
    if name in ("involvedObject", "related"):
        names = {"kind": "Kind", "namespace": "Namespace", "name": "Name", "uid": "UID", "apiVersion": "APIVersion",
                 "resourceVersion": "ResourceVersion", "fieldPath": "FieldPath"}  # fmt: skip
    elif name == "source":
        names = {"component": "Component", "host": "Host"}
    elif name == "count":
        return value or 0
    else:
        return value if value or name.endswith(("Time", "Timestamp")) else ""
    return None if value is None else as_json({shown: value.get(json_name, "") for json_name, shown in names.items()})


_REFERENCE: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

RULES: Final = {"Event": Rules(validate=_validate_core)}
NEW_RULES: Final = {"Event": Rules(validate=_validate_new)}
