"""The cells that belong to one kind: nodes, jobs, services, ingresses, autoscalers, volumes, quotas, requests, events.

`pod_cells` has those of pods, `cells` the rest (upstream's pkg/printers/internalversion/printers.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from noxu.go.time import unix_nanos
from noxu.tables.duration import Age, human
from noxu.tables.items import condition, count_of_more, is_true, values_at
from noxu.values import Json, Object, nested_field

Cell = Callable[[Object], Json]

# -- nodes ------------------------------------------------------------------------------------------------------------

_ROLE: Final = "kubernetes.io/role"
_ROLE_PREFIX: Final = "node-role.kubernetes.io/"


def node_status(node: Object) -> str:
    found = condition([*reversed(nested_field(node, "status.conditions") or [])], "Ready")
    status = "Unknown" if found is None else "Ready" if found.get("status") == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if nested_field(node, "spec.unschedulable") else status


def node_roles(given: Object) -> Cell:
    def show(node: Object) -> str:
        labels = nested_field(node, given["of"]) or {}
        roles = {name.removeprefix(_ROLE_PREFIX) for name in labels if name.startswith(_ROLE_PREFIX)}
        return ",".join(sorted((roles | {labels.get(_ROLE, "")}) - {""})) or str(given["missing"])

    return show


def kernel(given: Object) -> Cell:
    version_path, architecture_path = given["paths"]

    def show(node: Object) -> str:
        version = nested_field(node, version_path) or given["missing"]
        architecture = nested_field(node, architecture_path)
        return str(given["text"].format(version, architecture) if architecture else version)

    return show


# -- jobs -------------------------------------------------------------------------------------------------------------


def job_status(job: Object) -> str:
    conditions = nested_field(job, "status.conditions")
    for kind in ("Complete", "Failed"):
        if is_true(conditions, kind):
            return kind
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    later = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((kind for kind in later if is_true(conditions, kind)), "Running")


def job_completions(job: Object) -> str:
    done = nested_field(job, "status.succeeded") or 0
    wanted = nested_field(job, "spec.completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallelism = nested_field(job, "spec.parallelism") or 0
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def job_duration(job: Object) -> str | Age:
    start, end = nested_field(job, "status.startTime"), nested_field(job, "status.completionTime")
    if not start:
        return ""
    return human(unix_nanos(end) - unix_nanos(start)) if end else Age(start)


# -- services, endpoints and ingresses --------------------------------------------------------------------------------


def service_ports(ports: Iterable[Object], _: Object) -> str:
    def text(port: Object) -> str:
        outside = f":{port['nodePort']}" if port.get("nodePort", 0) > 0 else ""
        return f"{port.get('port', 0)}{outside}/{port.get('protocol', '')}"

    return ",".join(map(text, ports))


def load_balancer_addresses(ingress: Iterable[Object], _: Object) -> str:
    return ",".join(_addresses(ingress))


def _addresses(ingress: Iterable[Object]) -> list[str]:
    return sorted({entry.get("ip") or entry.get("hostname") or "" for entry in ingress} - {""})


def service_external_addresses(service: Object) -> str:
    kind = nested_field(service, "spec.type")
    given = ",".join(nested_field(service, "spec.externalIPs") or ())
    if kind in ("ClusterIP", "NodePort"):
        return given or "<none>"
    if kind == "LoadBalancer":
        found = ",".join(_addresses(nested_field(service, "status.loadBalancer.ingress") or ()))
        return ",".join(filter(None, (found, given))) or "<pending>"
    return nested_field(service, "spec.externalName") or "" if kind == "ExternalName" else "<unknown>"


def endpoints(given: Object) -> Cell:
    def show(value: Object) -> str:
        subsets = nested_field(value, given["of"])
        return count_of_more(_endpoints(subsets), given["limit"], ",") if subsets else str(given["missing"])

    return show


def _endpoints(subsets: Iterable[Object]) -> Iterator[str]:
    for subset in subsets:
        addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
        if not subset.get("ports"):
            yield from addresses
        for port in subset.get("ports") or ():
            for address in addresses:
                yield f"[{address}]:{port.get('port', 0)}" if ":" in address else f"{address}:{port.get('port', 0)}"


def slice_ports(ports: Iterable[Object], given: Object) -> str:
    def text(port: Object) -> str:
        if port.get("port") is not None:
            return str(port["port"])
        return "*" if port.get("name") is None else port["name"]

    return count_of_more(map(text, ports), given["limit"], ",")


def hosts(given: Object) -> Cell:
    """The hosts of rules; the rules without a host count among those that are left out."""
    limit = given["limit"]

    def show(ingress: Object) -> str:
        found = list(values_at(ingress, given["of"]))
        named = [n for n, host in enumerate(found) if host][:limit]
        shown = ",".join(found[n] for n in named)
        if len(named) == limit and named[-1] < len(found) - 1:
            return f"{shown} + {len(found) - limit} more..."
        return shown or str(given["missing"])

    return show


# -- autoscalers ------------------------------------------------------------------------------------------------------

_NO_QUANTITY: Final = "<nil>"  # Go's text of a nil *resource.Quantity
_UNKNOWN: Final = "<unknown>"


def targets(given: Object) -> Cell:
    """`cpu: 50%/80%, 7/10 (avg) + 1 more...`: the current value and the target of metrics."""
    specs_path, statuses_path = given["paths"]

    def show(autoscaler: Object) -> str:
        statuses = nested_field(autoscaler, statuses_path) or []
        texts = [
            _target(spec, statuses[n] if n < len(statuses) else {})
            for n, spec in enumerate(nested_field(autoscaler, specs_path) or ())
        ]
        return count_of_more(texts, given["limit"], ", ") if texts else str(given["missing"])

    return show


def _target(spec: Object, status: Object) -> str:
    kind = spec.get("type", "")
    if kind not in ("External", "Pods", "Object", "Resource", "ContainerResource"):
        return "<unknown type>"
    name = kind[0].lower() + kind[1:]
    source, found = spec.get(name) or {}, status.get(name)
    target, current = source.get("target") or {}, (found or {}).get("current") or {}
    if kind == "Pods":
        average = _UNKNOWN if found is None else current.get("averageValue", _NO_QUANTITY)
        return f"{average}/{target.get('averageValue', _NO_QUANTITY)}"
    if kind in ("External", "Object"):
        if "averageValue" in target:
            return f"{current.get('averageValue', _UNKNOWN)}/{target['averageValue']} (avg)"
        return f"{current.get('value', _UNKNOWN)}/{target.get('value', _NO_QUANTITY)}"
    if "averageValue" in target:
        average = _UNKNOWN if found is None else current.get("averageValue", _NO_QUANTITY)
        return f"{source.get('name', '')}: {average}/{target['averageValue']}"
    percent = [
        f"{values['averageUtilization']}%" if "averageUtilization" in values else otherwise
        for values, otherwise in ((current, _UNKNOWN), (target, "<auto>"))
    ]
    return f"{source.get('name', '')}: {percent[0]}/{percent[1]}"


# -- volumes, claims and quotas ---------------------------------------------------------------------------------------

_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def access_modes(modes: Sequence[str], _: Object) -> str:
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in modes)


def phase_or_terminating(value: Object) -> str:
    return "Terminating" if value["metadata"].get("deletionTimestamp") else nested_field(value, "status.phase") or ""


def claim_state(claim: Object) -> str:
    deleted = claim["metadata"].get("deletionTimestamp")
    allocated, reserved = (nested_field(claim, f"status.{name}") for name in ("allocation", "reservedFor"))
    is_allocated = allocated is not None
    states = {
        "deleted": deleted,
        "pending": not is_allocated and not deleted,
        "allocated": is_allocated,
        "reserved": is_allocated and reserved,
    }
    return ",".join(name for name, holds in states.items() if holds)


def quota(given: Object) -> Cell:
    """`cpu: 1/2, pods: 3/10`: what is used of each limit; requests and limits have a column each."""

    def show(value: Object) -> str:
        hard, used = (nested_field(value, f"status.{name}") or {} for name in ("hard", "used"))
        names = (name for name in sorted(hard) if name.startswith("limits.") == given["limits"])
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return show


# -- requests of certificates -----------------------------------------------------------------------------------------


def seconds(given: Object) -> Cell:
    def show(value: Object) -> str:
        found = nested_field(value, given["of"])
        return str(given["missing"]) if found is None else human(found * 10**9)

    return show


def request_condition(request: Object) -> str:
    types = {item.get("type") for item in nested_field(request, "status.conditions") or ()}
    states = ["Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"]
    states += ["Failed"] if "Failed" in types else []
    states += ["Issued"] if nested_field(request, "status.certificate") else []
    return ",".join(states)


# -- definitions of custom resources ----------------------------------------------------------------------------------


def served_versions(versions: Iterable[Object], _: Object) -> str:
    served = (version for version in versions if version.get("served"))
    return ",".join(sorted(version["name"] + ("(storage)" if version.get("storage") else "") for version in served))


# -- events -----------------------------------------------------------------------------------------------------------


def event_first_seen(event: Object) -> Age:
    return Age(event.get("firstTimestamp") or event.get("eventTime") or "")


def event_last_seen(event: Object) -> Age:
    if event.get("series"):
        return Age(event["series"].get("lastObservedTime") or "")
    last = event.get("lastTimestamp")
    return Age(last) if last else event_first_seen(event)


def event_count(event: Object) -> Json:
    if event.get("series"):
        return event["series"].get("count") or 0
    return event.get("count") or 1  # a single event has no count


def event_object(event: Object) -> str:
    about = event.get("involvedObject") or {}
    kind = about.get("kind", "").lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def event_source(event: Object) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    instance = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component
