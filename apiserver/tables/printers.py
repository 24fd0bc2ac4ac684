"""Tables of the built-in kinds, as `kubectl get` shows them (upstream's pkg/printers/internalversion).

A kind is a list of columns, each with a function for its cells. Columns of priority 1 are for `-o wide`. Kinds without
an entry have the columns of upstream's kinds without a printer: name and creation time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Final, NamedTuple

from noxu.apiserver.go.text import trim_space
from noxu.apiserver.tables.duration import since
from noxu.apiserver.tables.table import CREATED, NAME_COLUMN, Columns, definition
from noxu.apiserver.values import Json, Object, nested_field


class Column(NamedTuple):
    definition: Object
    cell: Callable[[Object, datetime], Json]


@cache
def built_in_columns(group: str, kind: str) -> Columns:
    """The table of a built-in kind."""
    columns = _KINDS.get((group, kind), _WITHOUT_PRINTER)
    cells = [column.cell for column in columns]
    return Columns(
        [column.definition for column in columns],
        lambda value, now: [cell(value, now) for cell in cells],
        no_rows=[] if (group, kind) in _KINDS and kind != "CustomResourceDefinition" else None,
        go_type=f"*{(group or 'core').partition('.')[0]}.{kind}",
    )


# -- cells of any kind ------------------------------------------------------------------------------------------------


def _name(value: Object, _: datetime) -> str:
    name: str = value["metadata"].get("name", "")
    return name


def _age(value: Object, now: datetime) -> str:
    return since(value["metadata"].get("creationTimestamp") or "", now)


def _created(value: Object, _: datetime) -> str:
    return value["metadata"].get("creationTimestamp") or "0001-01-01T00:00:00Z"


def _text(name: str, path: str, description: str, *, priority: int = 0, otherwise: str = "") -> Column:
    return Column(
        definition(name, "string", description, priority=priority), lambda v, _: nested_field(v, path) or otherwise
    )


def _count(name: str, kind: str, description: str, *paths: str) -> Column:
    """A column with the number of entries in the lists or maps at the paths."""
    return Column(
        definition(name, kind, description), lambda v, _: sum(len(nested_field(v, path) or ()) for path in paths)
    )


_NAME: Final = Column(NAME_COLUMN, _name)
_AGE: Final = Column(definition("Age", "string", CREATED), _age)
_CREATED: Final = Column(definition("Created At", "date", CREATED), _created)
_WITHOUT_PRINTER: Final = (_NAME, _CREATED)


# -- events: core/v1 and events.k8s.io/v1 have different names for the same fields ------------------------------------------


def _either(value: Object, core: str, events: str) -> Json:
    found = nested_field(value, core)
    return nested_field(value, events) if found is None else found


def _first_seen(value: Object, now: datetime) -> str:
    first = _either(value, "firstTimestamp", "deprecatedFirstTimestamp")
    return since(first or value.get("eventTime") or "", now)


def _last_seen(value: Object, now: datetime) -> str:
    if value.get("series"):
        return since(nested_field(value, "series.lastObservedTime") or "", now)
    last = _either(value, "lastTimestamp", "deprecatedLastTimestamp")
    return since(last, now) if last else _first_seen(value, now)


def _event_count(value: Object, _: datetime) -> Json:
    if value.get("series"):
        return nested_field(value, "series.count") or 0
    return _either(value, "count", "deprecatedCount") or 1  # a single event has no count


def _event_object(value: Object, _: datetime) -> str:
    about = _either(value, "involvedObject", "regarding") or {}
    kind = about.get("kind", "").lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def _event_source(value: Object, _: datetime) -> str:
    source = _either(value, "source", "deprecatedSource") or {}
    component = source.get("component") or _either(value, "reportingComponent", "reportingController") or ""
    instance = source.get("host") or value.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


def _event_field_path(value: Object, _: datetime) -> str:
    return _either(value, "involvedObject.fieldPath", "regarding.fieldPath") or ""


def _event_message(value: Object, _: datetime) -> str:
    return trim_space(_either(value, "message", "note") or "")


_EVENT: Final = (
    Column(definition("Last Seen", "string", "When this was last observed."), _last_seen),
    _text("Type", "type", "Normal or Warning."),
    _text("Reason", "reason", "Why this happened, in one word."),
    Column(definition("Object", "string", "What the event is about."), _event_object),
    Column(definition("Subobject", "string", "Which part of it.", priority=1), _event_field_path),
    Column(definition("Source", "string", "Who reports the event.", priority=1), _event_source),
    Column(definition("Message", "string", "What happened, for people."), _event_message),
    Column(definition("First Seen", "string", "When this was first observed.", priority=1), _first_seen),
    Column(definition("Count", "string", "How often this has been observed.", priority=1), _event_count),
    Column({**NAME_COLUMN, "priority": 1}, _name),
)


# -- roles, webhooks and policies -------------------------------------------------------------------------------------


def _role(value: Object, _: datetime) -> str:
    return f"{nested_field(value, 'roleRef.kind') or ''}/{nested_field(value, 'roleRef.name') or ''}"


def _subjects(name: str, kind: str) -> Column:
    def cell(value: Object, _: datetime) -> str:
        found = [subject for subject in value.get("subjects") or () if subject.get("kind") == kind]
        return ", ".join(
            f"{subject.get('namespace', '')}/{subject['name']}"
            if kind == "ServiceAccount" and subject.get("namespace")
            else subject["name"]
            for subject in found
        )

    return Column(definition(name, "string", f"Subjects of kind {kind}.", priority=1), cell)


_BINDING: Final = (
    _NAME,
    Column(definition("Role", "string", "The role that is given."), _role),
    _AGE,
    _subjects("Users", "User"),
    _subjects("Groups", "Group"),
    _subjects("ServiceAccounts", "ServiceAccount"),
)

_WEBHOOKS: Final = (_NAME, _count("Webhooks", "integer", "How many webhooks there are.", "webhooks"), _AGE)


def _param_kind(value: Object, _: datetime) -> str:
    kind = nested_field(value, "spec.paramKind")
    return "<unset>" if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"


def _param_ref(value: Object, _: datetime) -> str:
    ref = nested_field(value, "spec.paramRef") or {}
    if ref.get("name"):
        return f"{ref.get('namespace') or '*'}/{ref['name']}"
    return "<unset>" if ref.get("selector") is None else _go_selector(ref["selector"])


def _go_selector(selector: Object) -> str:
    """A LabelSelector as Go's generated String method prints it."""
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{requirement.get('key', '')},Operator:{requirement.get('operator', '')},"
        f"Values:[{' '.join(requirement.get('values') or ())}],}},"
        for requirement in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _policy(column: str, path: str) -> tuple[Column, ...]:
    return (
        _NAME,
        _count(column, "integer", f"How many {column.lower()} there are.", path),
        Column(definition("ParamKind", "string", "The kind of the policy's parameters."), _param_kind),
        _AGE,
    )


_POLICY_BINDING: Final = (
    _NAME,
    _text("PolicyName", "spec.policyName", "The policy that is bound."),
    Column(definition("ParamRef", "string", "The parameters that it is bound with."), _param_ref),
    _AGE,
)


# -- definitions of custom resources (apiextensions' own printer) -----------------------------------------------------


def _served_versions(value: Object, _: datetime) -> str:
    served = [version for version in nested_field(value, "spec.versions") or () if version.get("served")]
    return ",".join(sorted(version["name"] + ("(storage)" if version.get("storage") else "") for version in served))


def _short_names(value: Object, _: datetime) -> str:
    return ",".join(nested_field(value, "spec.names.shortNames") or ())


def _established(value: Object, _: datetime) -> bool:
    conditions = nested_field(value, "status.conditions") or ()
    return any(condition.get("type") == "Established" and condition.get("status") == "True" for condition in conditions)


_DEFINITION: Final = (
    _NAME,
    _text("Scope", "spec.scope", "Cluster/Namespaced"),
    Column(definition("Versions", "string", "Served versions"), _served_versions),
    _CREATED,
    _text("Group", "spec.group", "API group", priority=1),
    _text("Kind", "spec.names.kind", "CustomResource kind", priority=1),
    Column(definition("ShortNames", "string", "Short names", priority=1), _short_names),
    Column(definition("Established", "boolean", "Established status", priority=1), _established),
)


# -- services ---------------------------------------------------------------------------------------------------------


def _external_addresses(value: Object, _: datetime) -> str:
    spec = value.get("spec", {})
    addresses = list(spec.get("externalIPs") or ())
    if spec.get("type") == "ExternalName":
        return spec.get("externalName") or "<none>"
    if spec.get("type") == "LoadBalancer":
        ingress = nested_field(value, "status.loadBalancer.ingress") or ()
        addresses = [entry.get("ip") or entry.get("hostname") or "" for entry in ingress] + addresses
        return ",".join(addresses) or "<pending>"
    return ",".join(addresses) or "<none>"


def _ports(value: Object, _: datetime) -> str:
    def text(port: Object) -> str:
        outside = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port.get('port')}{outside}/{port.get('protocol')}"

    return ",".join(map(text, nested_field(value, "spec.ports") or ())) or "<none>"


def _service_selector(value: Object, _: datetime) -> str:
    selector = nested_field(value, "spec.selector") or {}
    return ",".join(f"{name}={selector[name]}" for name in sorted(selector)) or "<none>"


_KINDS: Final[dict[tuple[str, str], tuple[Column, ...]]] = {
    ("", "Namespace"): (_NAME, _text("Status", "status.phase", "Active or Terminating."), _AGE),
    ("", "ConfigMap"): (_NAME, _count("Data", "string", "How many entries there are.", "data", "binaryData"), _AGE),
    ("", "Secret"): (
        _NAME,
        _text("Type", "type", "What kind of secret it is."),
        _count("Data", "string", "How many entries there are.", "data"),
        _AGE,
    ),
    ("", "Service"): (
        _NAME,
        _text("Type", "spec.type", "How it is reached."),
        _text("Cluster-IP", "spec.clusterIP", "Its address in the cluster.", otherwise="<none>"),
        Column(definition("External-IP", "string", "Its addresses outside."), _external_addresses),
        Column(definition("Port(s)", "string", "Its ports."), _ports),
        _AGE,
        Column(definition("Selector", "string", "Which pods are behind it.", priority=1), _service_selector),
    ),
    ("", "ServiceAccount"): (_NAME, _count("Secrets", "string", "How many secrets it lists.", "secrets"), _AGE),
    ("", "Event"): _EVENT,
    ("events.k8s.io", "Event"): _EVENT,
    ("coordination.k8s.io", "Lease"): (_NAME, _text("Holder", "spec.holderIdentity", "Who holds the lease."), _AGE),
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): _policy("Validations", "spec.validations"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): _policy("Mutations", "spec.mutations"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _POLICY_BINDING,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): _POLICY_BINDING,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _DEFINITION,
}
