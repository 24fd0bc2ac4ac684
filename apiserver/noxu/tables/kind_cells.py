"""The cells that belong to one kind: pods, nodes, jobs, services, ingresses, autoscalers, volumes, quotas, requests, events.

`cells` has the rest (upstream's pkg/printers/internalversion/printers.go).

The cells of a pod show how many containers are ready, the reason for its state, and how often containers were
restarted. A pod is initializing until all its init containers are finished; those with restartPolicy Always count as
finished when they are started, and then run beside the containers (upstream's printPod).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from noxu.go.time import unix_nanos
from noxu.tables.table import Age, human
from noxu.values import Json, Object, nested_field


def values_at(value: Json, path: str) -> Iterator[str]:
    """The texts along a path; an unset field of an item is empty, as in Go.

    {"a": [{"b": "x"}, {}]}   a[*].b   "x", ""
    {"a": ["x", "y"]}         a        "x", "y"
    """
    outer, wildcard, inner = path.partition("[*]")
    for item in nested_field(value, outer) or ():
        inner_path = inner.removeprefix(".")
        if not wildcard or not inner_path:
            yield item
        elif "[*]" in inner_path:
            yield from values_at(item, inner_path)
        else:
            yield nested_field(item, inner_path) or ""


def condition(conditions: Sequence[Object] | None, kind: str) -> Object | None:
    """The first condition, or other item, of a type."""
    return next((item for item in conditions or () if item.get("type") == kind), None)


def is_true(conditions: Sequence[Object] | None, kind: str) -> bool:
    """Whether any condition of a type is True."""
    return any(item.get("type") == kind and item.get("status") == "True" for item in conditions or ())


def count_of_more(texts: Iterable[str], limit: int, by: str) -> str:
    """The first texts, joined, and how many follow: `a,b,c + 2 more...`."""
    all_texts = list(texts)
    shown = by.join(all_texts[:limit])
    return f"{shown} + {len(all_texts) - limit} more..." if len(all_texts) > limit else shown


_FINAL_PHASES = ("Succeeded", "Failed")


def ready(pod: Object) -> str:
    """`1/2`: the containers that are ready, and all that run."""
    initialization = _initialization(pod)
    count = initialization.ready + sum(
        map(_runs, _statuses(pod, "containerStatuses")) if initialization.is_over else ()
    )
    return f"{count}/{len(nested_field(pod, 'spec.containers') or ()) + len(_restartable(pod))}"


def status(pod: Object) -> str:
    """The phase, or the reason why the pod or one of its containers is not running."""
    phase = nested_field(pod, "status.phase") or ""
    reason = nested_field(pod, "status.reason") or phase
    conditions = nested_field(pod, "status.conditions") or ()
    if any(item.get("type") == "PodScheduled" and item.get("reason") == "SchedulingGated" for item in conditions):
        reason = "SchedulingGated"
    initialization = _initialization(pod)
    reason = initialization.reason or reason
    if initialization.is_over:
        reason = _reason_of_containers(pod, reason)
    if pod["metadata"].get("deletionTimestamp"):
        if nested_field(pod, "status.reason") == "NodeLost":
            return "Unknown"
        if phase not in _FINAL_PHASES:
            return "Terminating"
    return str(reason)


def restarts(pod: Object) -> str | Age:
    """`2 (5m ago)`: how many restarts there were, and when the last one was."""
    initialization = _initialization(pod)
    counted = list(_up_to(_statuses(pod, "initContainerStatuses"), initialization.last))
    if initialization.is_over:
        restartable = _restartable(pod)
        counted = [item for item in counted if item.get("name") in restartable] + _statuses(pod, "containerStatuses")
    count = sum(item.get("restartCount", 0) for item in counted)
    ends = [nested_field(item, "lastState.terminated.finishedAt") for item in counted]
    last = max(filter(None, ends), key=unix_nanos, default="")
    return Age(last, f"{count} (", " ago)") if count and last else str(count)


def readiness_gates(pod: Object) -> str:
    """`1/2`: the gates whose condition is True, and all."""
    gates = nested_field(pod, "spec.readinessGates") or ()
    conditions = nested_field(pod, "status.conditions")
    passed = sum(is_true(conditions, gate.get("conditionType", "")) for gate in gates)
    return f"{passed}/{len(gates)}" if gates else "<none>"


# -- init containers --------------------------------------------------------------------------------------------------


class _Initialization(NamedTuple):
    """The state of a pod's init containers.

    `reason`: why they are not finished, "" if they are. `ready`: the number of ready sidecars. `last`: the status at which
    the initialization stopped.
    """

    reason: str
    ready: int
    last: Object | None
    is_over: bool


def _initialization(pod: Object) -> _Initialization:
    ready, restartable = 0, _restartable(pod)
    for n, item in enumerate(_statuses(pod, "initContainerStatuses")):
        ended = nested_field(item, "state.terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if item.get("name") in restartable and item.get("started"):
            ready += bool(item.get("ready"))
            continue
        initialized = is_true(nested_field(pod, "status.conditions"), "Initialized")
        return _Initialization(_reason_of_init_container(pod, n, item), ready, item, initialized)
    return _Initialization("", ready, None, True)


def _reason_of_init_container(pod: Object, n: int, item: Object) -> str:
    ended, waits = nested_field(item, "state.terminated"), nested_field(item, "state.waiting.reason")
    if ended is not None:
        return f"Init:{_end(ended)}"
    if waits and waits != "PodInitializing":
        return f"Init:{waits}"
    return f"Init:{n}/{len(nested_field(pod, 'spec.initContainers') or ())}"


def _restartable(pod: Object) -> set[str]:
    """The names of init containers that run beside the containers."""
    containers = nested_field(pod, "spec.initContainers") or ()
    return {item.get("name", "") for item in containers if item.get("restartPolicy") == "Always"}


def _up_to(items: Iterable[Object], last: Object | None) -> Iterable[Object]:
    for item in items:
        yield item
        if item is last:
            return


# -- containers -------------------------------------------------------------------------------------------------------


def _reason_of_containers(pod: Object, reason: str) -> str:
    """The reason of the first container that has one; a finished one counts only if no other one runs or failed."""
    error, running = "", False
    for item in reversed(_statuses(pod, "containerStatuses")):
        ended = nested_field(item, "state.terminated")
        if nested_field(item, "state.waiting.reason"):
            reason = item["state"]["waiting"]["reason"]
        elif ended is not None:
            reason = _end(ended)
            error = reason if ended.get("exitCode") else error
        else:
            running = running or _runs(item)
    if reason != "Completed":
        return reason
    if running and is_true(nested_field(pod, "status.conditions"), "Ready"):
        return "Running"
    return error or ("NotReady" if running else reason)


def _runs(item: Object) -> bool:
    state = item.get("state") or {}
    waits = (state.get("waiting") or {}).get("reason")
    is_running = state.get("running") is not None and state.get("terminated") is None and not waits
    return bool(item.get("ready")) and is_running


def _end(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _statuses(pod: Object, name: str) -> list[Object]:
    return nested_field(pod, f"status.{name}") or []


Cell = Callable[[Object], Json]

# -- nodes ------------------------------------------------------------------------------------------------------------

_ROLE: Final = "kubernetes.io/role"
_ROLE_PREFIX: Final = "node-role.kubernetes.io/"


def node_status(node: Object) -> str:
    ready_condition = condition([*reversed(nested_field(node, "status.conditions") or [])], "Ready")
    status = (
        "Unknown" if ready_condition is None else "Ready" if ready_condition.get("status") == "True" else "NotReady"
    )
    return f"{status},SchedulingDisabled" if nested_field(node, "spec.unschedulable") else status


def node_roles(computation: Object) -> Cell:
    def show(node: Object) -> str:
        labels = nested_field(node, computation["of"]) or {}
        roles = {name.removeprefix(_ROLE_PREFIX) for name in labels if name.startswith(_ROLE_PREFIX)}
        return ",".join(sorted((roles | {labels.get(_ROLE, "")}) - {""})) or str(computation["missing"])

    return show


def kernel(computation: Object) -> Cell:
    version_path, architecture_path = computation["paths"]

    def show(node: Object) -> str:
        version = nested_field(node, version_path) or computation["missing"]
        architecture = nested_field(node, architecture_path)
        return str(computation["text"].format(version, architecture) if architecture else version)

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
    external_ips = ",".join(nested_field(service, "spec.externalIPs") or ())
    if kind in ("ClusterIP", "NodePort"):
        return external_ips or "<none>"
    if kind == "LoadBalancer":
        balancer_addresses = ",".join(_addresses(nested_field(service, "status.loadBalancer.ingress") or ()))
        return ",".join(filter(None, (balancer_addresses, external_ips))) or "<pending>"
    return nested_field(service, "spec.externalName") or "" if kind == "ExternalName" else "<unknown>"


def endpoints(computation: Object) -> Cell:
    def show(value: Object) -> str:
        subsets = nested_field(value, computation["of"])
        return count_of_more(_endpoints(subsets), computation["limit"], ",") if subsets else str(computation["missing"])

    return show


def _endpoints(subsets: Iterable[Object]) -> Iterator[str]:
    for subset in subsets:
        addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
        if not subset.get("ports"):
            yield from addresses
        for port in subset.get("ports") or ():
            for address in addresses:
                yield f"[{address}]:{port.get('port', 0)}" if ":" in address else f"{address}:{port.get('port', 0)}"


def slice_ports(ports: Iterable[Object], computation: Object) -> str:
    def text(port: Object) -> str:
        if port.get("port") is not None:
            return str(port["port"])
        return "*" if port.get("name") is None else port["name"]

    return count_of_more(map(text, ports), computation["limit"], ",")


def hosts(computation: Object) -> Cell:
    """The hosts of rules; the rules without a host count among those that are left out."""
    limit = computation["limit"]

    def show(ingress: Object) -> str:
        host_names = list(values_at(ingress, computation["of"]))
        named = [n for n, host in enumerate(host_names) if host][:limit]
        shown = ",".join(host_names[n] for n in named)
        if len(named) == limit and named[-1] < len(host_names) - 1:
            return f"{shown} + {len(host_names) - limit} more..."
        return shown or str(computation["missing"])

    return show


# -- autoscalers ------------------------------------------------------------------------------------------------------

_NO_QUANTITY: Final = "<nil>"  # Go's text of a nil *resource.Quantity
_UNKNOWN: Final = "<unknown>"


def targets(computation: Object) -> Cell:
    """`cpu: 50%/80%, 7/10 (avg) + 1 more...`: the current value and the target of metrics."""
    specs_path, statuses_path = computation["paths"]

    def show(autoscaler: Object) -> str:
        statuses = nested_field(autoscaler, statuses_path) or []
        texts = [
            _target(spec, statuses[n] if n < len(statuses) else {})
            for n, spec in enumerate(nested_field(autoscaler, specs_path) or ())
        ]
        return count_of_more(texts, computation["limit"], ", ") if texts else str(computation["missing"])

    return show


def _target(spec: Object, status: Object) -> str:
    kind = spec.get("type", "")
    if kind not in ("External", "Pods", "Object", "Resource", "ContainerResource"):
        return "<unknown type>"
    name = kind[0].lower() + kind[1:]
    source, metric = spec.get(name) or {}, status.get(name)
    target, current = source.get("target") or {}, (metric or {}).get("current") or {}
    if kind == "Pods":
        average = _UNKNOWN if metric is None else current.get("averageValue", _NO_QUANTITY)
        return f"{average}/{target.get('averageValue', _NO_QUANTITY)}"
    if kind in ("External", "Object"):
        if "averageValue" in target:
            return f"{current.get('averageValue', _UNKNOWN)}/{target['averageValue']} (avg)"
        return f"{current.get('value', _UNKNOWN)}/{target.get('value', _NO_QUANTITY)}"
    if "averageValue" in target:
        average = _UNKNOWN if metric is None else current.get("averageValue", _NO_QUANTITY)
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


def quota(computation: Object) -> Cell:
    """`cpu: 1/2, pods: 3/10`: the used amount of each limit; requests and limits have a column each."""

    def show(value: Object) -> str:
        hard, used = (nested_field(value, f"status.{name}") or {} for name in ("hard", "used"))
        names = (name for name in sorted(hard) if name.startswith("limits.") == computation["limits"])
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return show


# -- requests of certificates -----------------------------------------------------------------------------------------


def seconds(computation: Object) -> Cell:
    def show(value: Object) -> str:
        amount = nested_field(value, computation["of"])
        return str(computation["missing"]) if amount is None else human(amount * 10**9)

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
