"""The specs of pods, and the pod templates of all workloads.

The rules are those of k8s.io/kubernetes pkg/apis/core/validation: ValidatePodSpec, ValidatePodTemplateSpec and
ValidatePodSpecificAnnotations, with the feature gates that are on by default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from noxu.api import field
from noxu.api.field import Path
from noxu.api.meta import validate_annotations
from noxu.api.names import dns1123_subdomain, subdomain_name
from noxu.go.text import quote
from noxu.kinds import checks, containers, placement, resource_requirements, security_contexts
from noxu.kinds.checks import Errors
from noxu.kinds.containers import Pod
from noxu.kinds.volumes import volumes
from noxu.values import Json, Object

MIRROR: Final = "kubernetes.io/config.mirror"
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
POD_SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
CONTAINER_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_is_cost: Final = re.compile("0|-?[1-9][0-9]{0,9}").fullmatch
_MAX_NAMESERVERS: Final = 3
_MAX_SEARCHES: Final = 32
_MAX_SEARCH_CHARACTERS: Final = 2048
_search: Final = re.compile(r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*")
_NOT_A_SEARCH: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_search.pattern}')"
)


NO_VOLUMES: Final[Mapping[str, Object]] = {}


def template(pod_template: Object, path: Path, *, mounted: Mapping[str, Object] = NO_VOLUMES) -> Errors:
    """A template of pods (ValidatePodTemplateSpec). `mounted` are volumes that its pods have besides their own."""
    metadata: Object = pod_template.get("metadata") or {}
    spec: Object = pod_template.get("spec") or {}
    notes: dict[str, str] = metadata.get("annotations") or {}
    if metadata.get("labels"):
        yield from checks.labels(metadata["labels"], f"{path}.labels")
    if notes:
        yield from validate_annotations(notes, f"{path}.annotations")
        yield from pod_annotations(notes, spec, f"{path}.annotations")
    yield from pod_spec(spec, f"{path}.spec", mounted=mounted)
    if notes:
        yield from profiles_match(notes, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        yield field.forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def pod_spec(
    spec: Object,
    path: Path,
    *,
    pod: str | None = None,
    any_value: bool = False,
    mounted: Mapping[str, Object] = NO_VOLUMES,
) -> Errors:
    """The spec of a pod. `pod` is its name; None in a template. `any_value`: selectors with invalid values are stored."""
    get: Json = spec.get
    grace_period = get("terminationGracePeriodSeconds")
    if grace_period is None:
        yield field.required(f"{path}.terminationGracePeriodSeconds")
    named_volumes: dict[str, Object] = {}
    if get("volumes"):
        yield from volumes(get("volumes"), f"{path}.volumes", named_volumes, pod=pod)
    claims: set[str] = set()
    if get("resourceClaims"):
        yield from _claims(get("resourceClaims"), claims, f"{path}.resourceClaims")
    about = Pod(
        {**mounted, **named_volumes},
        claims,
        get("restartPolicy", ""),
        grace_period,
        host_users=get("hostUsers") is not False,
    )
    yield from containers.regular(get("containers") or [], about, f"{path}.containers")
    if get("initContainers"):
        names = set(containers.names(get("containers")))
        yield from containers.initial(get("initContainers"), names, about, f"{path}.initContainers")
    if get("ephemeralContainers"):
        names = {*containers.names(get("containers")), *containers.names(get("initContainers"))}
        yield from containers.ephemeral(get("ephemeralContainers"), names, about, f"{path}.ephemeralContainers")
    if get("resources"):
        yield from resource_requirements.pod_requirements(spec, claims, f"{path}.resources")
    yield from _network_and_policies(spec, path, is_pod=pod is not None)
    yield from _placement(spec, path, any_value=any_value)
    yield from _rest(spec, path)


def _network_and_policies(spec: Object, path: Path, *, is_pod: bool) -> Errors:
    if spec.get("hostNetwork"):
        yield from _ports_of_host(spec, path, is_pod=is_pod)
    for name, type_ in (("restartPolicy", "core/v1.RestartPolicy"), ("dnsPolicy", "core/v1.DNSPolicy")):
        yield from checks.required_choice(spec.get(name), type_, f"{path}.{name}", declared=True)


def _ports_of_host(spec: Object, path: Path, *, is_pod: bool) -> Errors:
    """In the network of the host, ports of the host are those of the container. Templates may leave them out."""
    for n, container in enumerate(spec.get("containers") or ()):
        for m, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port.get("containerPort", 0):
                where = f"{path}.containers[{n}].ports[{m}].hostPort"
                yield field.invalid(where, host, "must match `containerPort` when `hostNetwork` is true")


def _placement(spec: Object, path: Path, *, any_value: bool) -> Errors:
    get: Json = spec.get
    if get("nodeSelector"):
        yield from checks.labels(get("nodeSelector"), f"{path}.nodeSelector")
    yield from security_contexts.of_pod(spec, path)
    if get("affinity"):
        yield from placement.affinity(get("affinity"), f"{path}.affinity", any_value=any_value)
    if get("dnsConfig") or get("dnsPolicy") == "None":
        yield from _dns(get("dnsConfig"), get("dnsPolicy", ""), f"{path}.dnsConfig")
    for n, gate in enumerate(get("readinessGates") or ()):
        yield from checks.qualified(gate.get("conditionType", ""), f"{path}.readinessGates[{n}].conditionType")
    gates: set[str] = set()
    for n, gate in enumerate(get("schedulingGates") or ()):
        name, where = gate.get("name", ""), f"{path}.schedulingGates[{n}]"
        yield from checks.qualified(name, where)
        if name in gates:
            yield field.duplicate(where, name)
        gates.add(name)
    if get("topologySpreadConstraints"):
        yield from placement.topology_spread(get("topologySpreadConstraints"), f"{path}.topologySpreadConstraints")
    yield from security_contexts.host_process(spec, path)
    yield from security_contexts.host_users(spec, path)


def _rest(spec: Object, path: Path) -> Errors:
    get: Json = spec.get
    for name in ("serviceAccountName", "nodeName"):
        if get(name):
            yield from checks.named(get(name), subdomain_name, f"{path}.{name}")
    if get("activeDeadlineSeconds") is not None:
        yield from checks.in_range(get("activeDeadlineSeconds"), 1, checks.MAX_INT32, f"{path}.activeDeadlineSeconds")
    for name in ("hostname", "subdomain"):
        if get(name):
            yield from checks.label(get(name), f"{path}.{name}")
    if get("tolerations"):
        yield from placement.tolerations(get("tolerations"), f"{path}.tolerations")
    for n, alias in enumerate(get("hostAliases") or ()):
        yield from checks.address(alias.get("ip", ""), f"{path}.hostAliases[{n}].ip")
        for m, hostname in enumerate(alias.get("hostnames") or ()):
            where = f"{path}.hostAliases[{n}].hostnames[{m}]"
            yield from (field.invalid(where, hostname, text) for text in dns1123_subdomain(hostname))
    if get("priorityClassName"):
        yield from checks.named(get("priorityClassName"), subdomain_name, f"{path}.priorityClassName")
    if get("runtimeClassName") is not None:
        yield from checks.named(get("runtimeClassName"), subdomain_name, f"{path}.runtimeClassName")
    preemption = get("preemptionPolicy")
    if preemption is not None:
        type_ = "core/v1.PreemptionPolicy"
        yield from checks.required_choice(preemption, type_, f"{path}.preemptionPolicy", declared=True)
    if get("overhead"):
        yield from resource_requirements.requirements({"limits": get("overhead")}, (), f"{path}.overhead")
    if get("os") is not None:
        yield from security_contexts.operating_system(spec, path)


def _claims(claims: list[Object], names: set[str], path: Path) -> Errors:
    """The claims of devices; their names are added to `names`."""
    names.update(claim["name"] for claim in claims if claim.get("name"))
    seen: set[str] = set()
    for n, claim in enumerate(claims):
        where, name = f"{path}[{n}]", claim.get("name", "")
        if not name:
            yield field.required(f"{where}.name")
        elif name in seen:
            yield field.duplicate(f"{where}.name", name)
        else:
            yield from checks.label(name, f"{where}.name")
        seen.add(name)
        sources = ("resourceClaimName", "resourceClaimTemplateName")
        count = sum(claim.get(source) is not None for source in sources)
        if count != 1:
            rule = (
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
                if count
                else "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            )
            yield field.invalid(where, checks.struct_json("core/v1.PodResourceClaim", claim), rule)
        for source in sources:
            if claim.get(source) is not None:
                yield from checks.named(claim[source], subdomain_name, f"{where}.{source}")


def _dns(config: Object | None, policy: str, path: Path) -> Errors:
    if policy == "None" and config is None:
        yield field.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    servers, searches = (config or {}).get("nameservers") or [], (config or {}).get("searches") or []
    if policy == "None" and not servers:
        rule = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield field.required(f"{path}.nameservers", rule)
        return
    if len(servers) > _MAX_NAMESERVERS:
        rule = f"must not have more than {_MAX_NAMESERVERS} nameservers"
        yield field.invalid(f"{path}.nameservers", servers, rule)
    for n, server in enumerate(servers):
        yield from checks.address(server, f"{path}.nameservers[{n}]")
    if len(searches) > _MAX_SEARCHES:
        rule = f"must not have more than {_MAX_SEARCHES} search paths"
        yield field.invalid(f"{path}.searches", searches, rule)
    if len(" ".join(searches)) > _MAX_SEARCH_CHARACTERS:
        rule = f"must not have more than {_MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list"
        yield field.invalid(f"{path}.searches", searches, rule)
    for n, search in enumerate(searches):
        name = search.removesuffix(".") if search != "." else "a"
        if len(name) > 253:
            yield field.invalid(f"{path}.searches[{n}]", name, "must be no more than 253 characters")
        if not _search.fullmatch(name):
            yield field.invalid(f"{path}.searches[{n}]", name, _NOT_A_SEARCH)
    for n, option in enumerate((config or {}).get("options") or ()):
        if not option.get("name"):
            yield field.required(f"{path}.options[{n}]", "must not be empty")


# -- annotations ------------------------------------------------------------------------------------------------------


def pod_annotations(notes: dict[str, str], spec: Object, path: Path) -> Errors:
    """Annotations that mean something in pods (ValidatePodSpecificAnnotations)."""
    if MIRROR in notes and not spec.get("nodeName"):
        rule = "must set spec.nodeName if mirror pod annotation is set"
        yield field.invalid(f"{path}[{MIRROR}]", notes[MIRROR], rule)
    cost = notes.get(_DELETION_COST)
    if cost is not None and not (_is_cost(cost) and -(2**31) <= int(cost) < 2**31):
        yield field.invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer")
    for name, value in sorted(notes.items()):
        if name == POD_SECCOMP or name.startswith(CONTAINER_SECCOMP):
            yield from _seccomp(value, f"{path}.{name}")
    profiles = sorted(item for item in notes.items() if item[0].startswith(APP_ARMOR))
    names = {listed.get("name") for listed, _ in security_contexts.containers(spec, "")} if profiles else set()
    for name, value in profiles:
        container = name.removeprefix(APP_ARMOR)
        if container not in names:
            yield field.invalid(f"{path}[{name}]", container, "container not found")
        if value not in ("", "runtime/default", "unconfined") and not value.startswith("localhost/"):
            yield field.invalid(f"{path}[{name}]", value, f"invalid AppArmor profile name: {quote(value)}")


def _seccomp(profile: str, path: Path) -> Errors:
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return
    if profile.startswith("localhost/"):
        yield from checks.descending(profile.removeprefix("localhost/"), path)
    else:
        yield field.invalid(path, profile, "must be a valid seccomp profile")


def profiles_match(notes: dict[str, str], spec: Object, path: Path) -> Errors:
    """The profiles in annotations are those in the fields that replaced them, if both are there."""
    if not any(name == POD_SECCOMP or name.startswith((CONTAINER_SECCOMP, APP_ARMOR)) for name in notes):
        return
    of_pod: Object = spec.get("securityContext") or {}
    where = f"{path}.securityContext.seccompProfile"
    yield from _same_profile("seccomp", notes.get(POD_SECCOMP), of_pod.get("seccompProfile"), where)
    for container, at in security_contexts.containers(spec, path):
        own: Object = container.get("securityContext") or {}
        note = notes.get(CONTAINER_SECCOMP + container.get("name", ""))
        where = f"{at}.securityContext.seccompProfile"
        yield from _same_profile("seccomp", note, own.get("seccompProfile"), where)
    if (spec.get("os") or {}).get("name") == "windows":
        return
    for container, at in security_contexts.containers(spec, path):
        own = container.get("securityContext") or {}
        note = notes.get(APP_ARMOR + container.get("name", ""))
        profile = own.get("appArmorProfile") or of_pod.get("appArmorProfile")
        yield from _same_profile("apparmor", note, profile, f"{at}.securityContext.appArmorProfile")


_NOTED: Final = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default", "docker/default")}


def _same_profile(profile_kind: str, note: str | None, profile: Object | None, path: Path) -> Errors:
    if note is None or profile is None:
        return
    kind = profile.get("type", "")
    rule = "type in annotation and field must match"
    if kind == "Localhost":
        if not note.startswith("localhost/"):
            yield field.forbidden(f"{path}.type", f"{profile_kind} {rule}")
        elif note.removeprefix("localhost/") != profile.get("localhostProfile"):
            yield field.forbidden(
                f"{path}.localhostProfile", f"{profile_kind} profile in annotation and field must match"
            )
    elif kind in _NOTED and note not in _NOTED[kind]:
        yield field.forbidden(f"{path}.type", f"{profile_kind} {rule}")
