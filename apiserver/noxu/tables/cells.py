"""The cells of built-in kinds: functions made from the computations in the data of columns (`kinds/data/columns.json`).

A computation is named by `compute`, works on `of` or `paths`, and shows `missing` where nothing is there:

    {"path": "spec.nodeName", "missing": "<none>"}                               node-1
    {"compute": "since", "of": "metadata.creationTimestamp", "missing": …}       5m
    {"compute": "join", "of": "spec.containers[*].name", "by": ","}              web,log

The functions follow upstream's pkg/printers/internalversion/printers.go. They get objects of any server version and also
the bookmarks of watches, so nothing but `metadata` is certain to be there; types are those of the struct tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from noxu.go.text import trim_space
from noxu.kinds.checks import label_selector_errors, selector_text
from noxu.tables import kind_cells
from noxu.tables.kind_cells import condition, count_of_more, is_true, values_at
from noxu.tables.table import Age
from noxu.values import Json, Object, nested_field

Cell = Callable[[Object], Json | Age]

ZERO_TIME: Final = "0001-01-01T00:00:00Z"
_NUMBERS_AS_TEXT: Final = frozenset({"spec.minReplicas", "spec.minAvailable", "spec.maxUnavailable"})
"""The paths whose numbers upstream prints as text; other cells have the type of the field."""


def cell(value: Object, kind: str = "string") -> Cell:
    """The function of a column's `value`; `kind` is the type of the column. Raises KeyError for an unknown computation."""
    if "path" in value:
        return _at_path(value, kind)
    return _COMPUTATIONS[value["compute"]](value)


def _at_path(computation: Object, kind: str) -> Cell:
    path = computation["path"]
    missing = computation.get("missing", ZERO_TIME if kind == "date" else "")
    as_text = path in _NUMBERS_AS_TEXT

    def show(value: Object) -> Json:
        item = nested_field(value, path)
        if item is None or item == "":
            return missing
        return str(item) if as_text else item

    return show


# -- any field --------------------------------------------------------------------------------------------------------


def _at(write: Callable[[Json, Object], Json | Age]) -> Callable[[Object], Cell]:
    """A computation of the value at `of`, None if nothing is there, and of the column's arguments."""
    return lambda computation: lambda value: write(nested_field(value, computation["of"]), computation)


def _of_text(computation: Object, read: Callable[[Object], str]) -> Cell:
    """A text, or `missing` if it is empty."""
    missing = computation.get("missing", "")
    return lambda value: read(value) or missing


def _since(time: Json, column: Object) -> Json | Age:
    return Age(time) if time else column["missing"]


def _count(computation: Object) -> Cell:
    paths = computation.get("paths") or [computation["of"]]
    return lambda value: sum(len(nested_field(value, path) or ()) for path in paths)


def _join(computation: Object) -> Cell:
    path, by, needed = computation["of"], computation["by"], computation.get("unless")

    def text(value: Object) -> str:
        return str(by.join(values_at(value, path)))

    if needed is None:
        return _of_text(computation, text)
    return lambda value: computation["missing"] if nested_field(value, needed) is None else text(value)


def _join_limited(computation: Object) -> Cell:
    path, limit = computation["of"], computation["limit"]
    return _of_text(computation, lambda value: count_of_more(values_at(value, path), limit, ","))


def _first(computation: Object) -> Cell:
    path = computation["of"] if "[*]" in computation["of"] else f"{computation['of']}[*]"
    return _of_text(computation, lambda value: next(iter(values_at(value, path)), ""))


def _format(computation: Object) -> Cell:
    """`unless` names what must be there for the text; without it `missing` stands in for each path."""
    template, paths, needed = computation["text"], computation["paths"], computation.get("unless")
    missing = computation.get("missing", "")
    instead = missing if needed is None else ""

    def show(value: Object) -> str:
        if needed is not None and nested_field(value, needed) is None:
            return str(missing)
        items = (nested_field(value, path) for path in paths)
        text: str = template.format(*(instead if item is None else item for item in items))
        return text

    return show


def _bool(value: Json, column: Object) -> Json:
    return column["missing"] if value is None else column["true" if value else "false"]


def _choose(value: Json, column: Object) -> Json:
    return column["otherwise" if value else "empty"]


def _trim(text: Json, _: Object) -> Json:
    return trim_space(text or "")


def _suffixed(computation: Object) -> Cell:
    """A suffix for objects with an annotation. One that depends on the whole list is added by `printers`."""
    name, suffix = computation["of"], computation["suffix"]
    annotation, expected = computation["when"].get("annotation"), computation["when"].get("is")

    def show(value: Object) -> str:
        text: str = nested_field(value, name) or ""
        annotations = value["metadata"].get("annotations") or {}
        return text + suffix if annotation and annotations.get(annotation) == expected else text

    return show


def _if_set(computation: Object) -> Cell:
    then = cell(computation["value"])
    return lambda value: then(value) if nested_field(value, computation["given"]) else ""


def _annotation_or(computation: Object) -> Cell:
    def show(value: Object) -> str:
        annotations = value["metadata"].get("annotations") or {}
        annotation: str = annotations.get(computation["annotation"]) or ""
        return annotation if computation["annotation"] in annotations else nested_field(value, computation["of"]) or ""

    return show


def _labels(labels: Json, column: Object) -> Json:
    return ",".join(f"{name}={labels[name]}" for name in sorted(labels or ())) or column["empty"]


def _label_selector(selector: Json, column: Object) -> Json:
    if label_selector_errors(selector or {}, ""):
        return column["invalid"]
    return selector_text(selector or {}) or column["empty"]


# -- conditions -------------------------------------------------------------------------------------------------------


def _condition(conditions: Json, column: Object) -> Json:
    current = condition(conditions, column["type"])
    if current is None:
        return column["missing"]
    return column["true" if current.get("status") == "True" else "otherwise"]


def _condition_field(conditions: Json, column: Object) -> Json:
    current = condition(conditions, column["type"])
    return column.get("missing", "") if current is None else current.get(column["field"], "")


def _condition_status(conditions: Json, column: Object) -> Json:
    current = condition(conditions, column["type"])
    if current is None:
        return column["missing"]
    status, reason = current.get("status", ""), current.get("reason")
    return f"{status} ({reason})" if reason and status != "True" else status


def _has_condition(conditions: Json, column: Object) -> Json:
    return is_true(conditions, column["type"])


def _last_condition_of(conditions: Json, column: Object) -> Json:
    status = column.get("status")
    for current in reversed(conditions or []):
        if current.get("type") in column["types"] and status in (None, current.get("status")):
            return current["type"]
    return column["missing"]


def _address(conditions: Json, column: Object) -> str:
    current = condition(conditions, column["type"])
    return "" if current is None else current.get("address", "")


# -- references and addresses -----------------------------------------------------------------------------------------


def _reference(write: Callable[[Object], str]) -> Callable[[Object], Cell]:
    """A computation of a struct at `of`."""
    return _at(lambda struct, column: column.get("missing", "") if struct is None else write(struct))


def _qualified(name: str, group: str) -> str:
    return f"{name}.{group}" if group else name


def _class_parameters(reference: Object) -> str:
    return f"{_qualified(reference.get('kind', ''), reference.get('apiGroup', ''))}/{reference.get('name', '')}"


def _parent_ref(reference: Object) -> str:
    resource = _qualified(reference.get("resource", ""), reference.get("group", "")).lower()
    return "/".join(filter(None, (resource, reference.get("namespace"), reference.get("name"))))


def _group_resource(reference: Object) -> str:
    return _qualified(reference.get("resource", ""), reference.get("group", ""))


def _controller(owners: Json, _: Object) -> str:
    for owner in owners:
        if owner.get("controller"):
            group = owner.get("apiVersion", "").rpartition("/")[0]
            return f"{_qualified(owner.get('kind', ''), group).lower()}/{owner.get('name', '')}"
    return ""


def _param_ref(reference: Object) -> str:
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    return "<unset>" if reference.get("selector") is None else _go_selector(reference["selector"])


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


def _subjects(subjects: Json, column: Object) -> Json:
    texts = (
        column["text"].format(name=subject.get("name", ""), namespace=subject.get("namespace", ""))
        for subject in subjects or ()
        if subject.get("kind") == column["kind"]
    )
    return column["by"].join(texts)


# -- computations of single kinds -------------------------------------------------------------------------------------


def _whole(show: Cell) -> Callable[[Object], Cell]:
    """A computation that knows its fields."""
    return lambda _: show


def _part(write: Callable[[Json, Object], str]) -> Callable[[Object], Cell]:
    """A computation of the value at `of` and of the column's arguments; `missing` stands in for an empty text."""
    return lambda computation: _of_text(
        computation, lambda value: write(nested_field(value, computation["of"]) or (), computation)
    )


_COMPUTATIONS: Final[Mapping[str, Callable[[Object], Cell]]] = {
    "accessModes": _part(kind_cells.access_modes),
    "address": _part(_address),
    "annotationOr": _annotation_or,
    "bool": _at(_bool),
    "choose": _at(_choose),
    "claimState": _whole(kind_cells.claim_state),
    "classParameters": _reference(_class_parameters),
    "condition": _at(_condition),
    "conditionField": _at(_condition_field),
    "conditionStatus": _at(_condition_status),
    "controller": _part(_controller),
    "count": _count,
    "csrCondition": _whole(kind_cells.request_condition),
    "endpoints": kind_cells.endpoints,
    "eventCount": _whole(kind_cells.event_count),
    "eventFirstSeen": _whole(kind_cells.event_first_seen),
    "eventLastSeen": _whole(kind_cells.event_last_seen),
    "eventObject": _whole(kind_cells.event_object),
    "eventSource": _whole(kind_cells.event_source),
    "first": _first,
    "format": _format,
    "groupResource": _reference(_group_resource),
    "hasCondition": _at(_has_condition),
    "hpaTargets": kind_cells.targets,
    "ifSet": _if_set,
    "ingressHosts": kind_cells.hosts,
    "jobCompletions": _whole(kind_cells.job_completions),
    "jobDuration": _whole(kind_cells.job_duration),
    "jobStatus": _whole(kind_cells.job_status),
    "join": _join,
    "joinLimited": _join_limited,
    "kernel": kind_cells.kernel,
    "labelSelector": _at(_label_selector),
    "labels": _at(_labels),
    "lastConditionOf": _at(_last_condition_of),
    "loadBalancerAddresses": _part(kind_cells.load_balancer_addresses),
    "nodeRoles": kind_cells.node_roles,
    "nodeStatus": _whole(kind_cells.node_status),
    "paramRef": _reference(_param_ref),
    "parentRef": _reference(_parent_ref),
    "phaseOrTerminating": _whole(kind_cells.phase_or_terminating),
    "podReady": _whole(kind_cells.ready),
    "podRestarts": _whole(kind_cells.restarts),
    "podStatus": _whole(kind_cells.status),
    "quota": kind_cells.quota,
    "readinessGates": _whole(kind_cells.readiness_gates),
    "seconds": kind_cells.seconds,
    "serviceExternalIP": _whole(kind_cells.service_external_addresses),
    "servedVersions": _part(kind_cells.served_versions),
    "servicePorts": _part(kind_cells.service_ports),
    "since": _at(_since),
    "slicePorts": _part(kind_cells.slice_ports),
    "subjects": _at(_subjects),
    "suffixed": _suffixed,
    "trim": _at(_trim),
}
