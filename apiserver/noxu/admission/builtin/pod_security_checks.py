"""The Pod Security Standards: the checks of the levels baseline and restricted (k8s.io/pod-security-admission).

A check applies from a version of Kubernetes on; a namespace may ask for the checks of an older version. Each function
takes the annotations and the spec of a pod, and returns (reason, detail), None if the pod passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Final, Literal, NamedTuple, TypeAlias

from noxu.go.text import quote
from noxu.values import Json, Object

Level: TypeAlias = Literal["privileged", "baseline", "restricted"]
LEVELS: Final[tuple[Level, ...]] = ("privileged", "baseline", "restricted")
"""From the least to the most strict."""
LATEST: Final = 37
"""The minor version whose checks "latest" means, and all versions after it."""


class Violation(NamedTuple):
    reason: str
    detail: str


CheckPod: TypeAlias = Callable[[Object, Object], Violation | None]


class _Check(NamedTuple):
    """`versions`: (first minor version, function). `replaces`: a check of baseline that it includes."""

    name: str
    level: Level
    versions: tuple[tuple[int, CheckPod], ...]
    replaces: str = ""


def violations(level: Level, minor: int, annotations: Object, spec: Object) -> list[Violation]:
    """What a pod violates of a level at a version, in upstream's order."""
    results = (check(annotations, spec) for check in _checks(level, min(minor, LATEST)))
    return [violation for violation in results if violation is not None]


@lru_cache(maxsize=128)
def _checks(level: Level, minor: int) -> tuple[CheckPod, ...]:
    """The checks of baseline by name, and then those of restricted."""
    if level == "privileged":
        return ()
    chosen = [
        (check, [function for first, function in check.versions if first <= minor])
        for check in sorted(_ALL, key=lambda check: (check.level, check.name))
        if LEVELS.index(check.level) <= LEVELS.index(level)
    ]
    replaced = {check.replaces for check, functions in chosen if functions}
    return tuple(functions[-1] for check, functions in chosen if functions and check.name not in replaced)


# -- the parts of a pod -----------------------------------------------------------------------------------------------


def _containers(spec: Object) -> Iterator[Object]:
    for name in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(name) or ()


def _security(value: Object) -> Object:
    """The securityContext of a pod or a container."""
    return value.get("securityContext") or {}


def _nested(value: Object, outer: str, inner: str) -> Json:
    """A field of a part of a securityContext, None if it is absent."""
    return (_security(value).get(outer) or {}).get(inner)


def _plural(count: int, singular: str, plural: str = "") -> str:
    return singular if count == 1 else plural or f"{singular}s"


def _quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def _named(containers: list[str]) -> str:
    return f"{_plural(len(containers), 'container')} {_quoted(containers)}"


def _setters(spec: Object, is_bad: Callable[[Object], bool]) -> list[str]:
    """The pod, and the containers, whose securityContext is bad."""
    bad = [container["name"] for container in _containers(spec) if is_bad(container)]
    return [*(["pod"] if is_bad(spec) else []), *([_named(bad)] if bad else [])]


def _bad_containers(spec: Object, is_bad: Callable[[Object], bool]) -> list[str]:
    return [container["name"] for container in _containers(spec) if is_bad(container)]


def _unless_windows(check: CheckPod) -> CheckPod:
    """From 1.25: fields that Windows does not have are not required there."""

    def checked(annotations: Object, spec: Object) -> Violation | None:
        is_windows = (spec.get("os") or {}).get("name") == "windows"
        return None if is_windows else check(annotations, spec)

    return checked


def _unless_in_user_namespace(check: CheckPod) -> CheckPod:
    """From 1.35: root in a user namespace is not root of the node."""

    def checked(annotations: Object, spec: Object) -> Violation | None:
        return None if spec.get("hostUsers") is False else check(annotations, spec)

    return checked


# -- baseline ---------------------------------------------------------------------------------------------------------

_APPARMOR_ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_PROFILES: Final = (None, "RuntimeDefault", "Localhost")
_CAPABILITIES: Final = frozenset(
    {"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID",
     "SETPCAP", "SETUID", "SYS_CHROOT"}
)  # fmt: skip
_SYSCTLS: Final = (
    (0, ("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
         "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start")),
    (27, ("net.ipv4.ip_local_reserved_ports",)),
    (29, ("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
          "net.ipv4.tcp_keepalive_probes")),
    (32, ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")),
    (37, ("net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat")),
)  # fmt: skip
"""The sysctls that are allowed, and since which minor version."""
_SELINUX_TYPES: Final = ("", "container_t", "container_init_t", "container_kvm_t")
_ENGINE_TYPE: Final = "container_engine_t"  # since 1.31


def _profile(value: Object, name: str) -> Json:
    """The type of a profile; "" if there is a profile without type, None if there is none."""
    profile = _security(value).get(name)
    return None if profile is None else profile.get("type", "")


def _app_armor(annotations: Object, spec: Object) -> Violation | None:
    def is_bad(value: Object) -> bool:
        return _profile(value, "appArmorProfile") not in _PROFILES

    setters = _setters(spec, is_bad)
    values = sorted({_profile(value, "appArmorProfile") for value in (spec, *_containers(spec)) if is_bad(value)})
    forbidden = sorted(
        f"{name}={quote(value)}"
        for name, value in annotations.items()
        if name.startswith(_APPARMOR_ANNOTATION) and value not in ("", "runtime/default")
        if not value.startswith("localhost/")
    )
    if forbidden:
        values += forbidden
        setters.append(_plural(len(forbidden), "annotation"))
    if not setters:
        return None
    reason = _plural(len(values), "forbidden AppArmor profile")
    return Violation(reason, f"{' and '.join(setters)} must not set AppArmor profile type to {_quoted(values)}")


def _added(container: Object) -> list[str]:
    return _nested(container, "capabilities", "add") or []


def _capabilities_baseline(_: Object, spec: Object) -> Violation | None:
    bad = _bad_containers(spec, lambda container: not _CAPABILITIES.issuperset(_added(container)))
    added = sorted({name for container in _containers(spec) for name in _added(container)} - _CAPABILITIES)
    if not bad:
        return None
    detail = f"{_named(bad)} must not include {_quoted(added)} in securityContext.capabilities.add"
    return Violation("non-default capabilities", detail)


def _host_namespaces(_: Object, spec: Object) -> Violation | None:
    fields = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    return Violation("host namespaces", ", ".join(fields)) if fields else None


def _host_path_volumes(_: Object, spec: Object) -> Violation | None:
    names = [volume["name"] for volume in spec.get("volumes") or () if volume.get("hostPath") is not None]
    return Violation("hostPath volumes", f"{_plural(len(names), 'volume')} {_quoted(names)}") if names else None


def _host_ports(_: Object, spec: Object) -> Violation | None:
    def ports(container: Object) -> list[str]:
        return [str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")]

    bad = _bad_containers(spec, lambda container: bool(ports(container)))
    numbers = sorted({port for container in _containers(spec) for port in ports(container)})
    if not bad:
        return None
    detail = (
        f"{_named(bad)} {_plural(len(bad), 'uses', 'use')} {_plural(len(numbers), 'hostPort')} {', '.join(numbers)}"
    )
    return Violation("hostPort", detail)


def _handler_hosts(_: Object, spec: Object) -> Violation | None:
    def hosts(container: Object) -> list[str]:
        probes = [container.get(name) for name in ("livenessProbe", "readinessProbe", "startupProbe")]
        lifecycle = container.get("lifecycle") or {}
        handlers = [*probes, lifecycle.get("postStart"), lifecycle.get("preStop")]
        targets = [handler.get(name) for handler in handlers if handler for name in ("httpGet", "tcpSocket")]
        return [target["host"] for target in targets if target and target.get("host")]

    bad = sorted(set(_bad_containers(spec, lambda container: bool(hosts(container)))))
    names = sorted({host for container in _containers(spec) for host in hosts(container)})
    if not bad:
        return None
    what = _plural(len(names), "probe or lifecycle host")
    return Violation(
        "probe or lifecycle host", f"{_named(bad)} {_plural(len(bad), 'uses', 'use')} {what} {_quoted(names)}"
    )


def _privileged(_: Object, spec: Object) -> Violation | None:
    bad = _bad_containers(spec, lambda container: _security(container).get("privileged") is True)
    return Violation("privileged", f"{_named(bad)} must not set securityContext.privileged=true") if bad else None


def _proc_mount(_: Object, spec: Object) -> Violation | None:
    def mount(container: Object) -> Json:
        return _security(container).get("procMount")

    bad = _bad_containers(spec, lambda container: mount(container) not in (None, "Default"))
    types = sorted({mount(container) for container in _containers(spec)} - {None, "Default"})
    if not bad:
        return None
    return Violation("procMount", f"{_named(bad)} must not set securityContext.procMount to {_quoted(types)}")


def _selinux(allowed: tuple[str, ...], _: Object, spec: Object) -> Violation | None:
    def options(value: Object) -> Object:
        return _security(value).get("seLinuxOptions") or {}

    def is_bad(value: Object) -> bool:
        written = options(value)
        return written.get("type", "") not in allowed or bool(written.get("user") or written.get("role"))

    setters = _setters(spec, is_bad)
    if not setters:
        return None
    every = [options(value) for value in (spec, *_containers(spec))]
    types = sorted({written.get("type", "") for written in every} - set(allowed))
    data = [f"{_plural(len(types), 'type')} {_quoted(types)}"] if types else []
    data += [f"{name} may not be set" for name in ("user", "role") if any(written.get(name) for written in every)]
    detail = f"{' and '.join(setters)} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"
    return Violation("seLinuxOptions", detail)


def _seccomp_annotations(annotations: Object, spec: Object) -> Violation | None:
    names = [_SECCOMP_POD, *(f"{_SECCOMP_CONTAINER}{container['name']}" for container in _containers(spec))]
    forbidden = sorted(
        {
            f"{name}={quote(annotations[name])}"
            for name in names
            if name in annotations and annotations[name] not in ("runtime/default", "docker/default")
            if not annotations[name].startswith("localhost/")
        }
    )
    if not forbidden:
        return None
    return Violation("seccompProfile", f"forbidden {_plural(len(forbidden), 'annotation')} {', '.join(forbidden)}")


def _has_bad_seccomp(value: Object) -> bool:
    return _profile(value, "seccompProfile") not in _PROFILES


def _seccomp_baseline(_: Object, spec: Object) -> Violation | None:
    setters = _setters(spec, _has_bad_seccomp)
    if not setters:
        return None
    bad = (value for value in (spec, *_containers(spec)) if _has_bad_seccomp(value))
    types = _quoted(sorted({_profile(value, "seccompProfile") for value in bad}))
    detail = f"{' and '.join(setters)} must not set securityContext.seccompProfile.type to {types}"
    return Violation("seccompProfile", detail)


def _sysctls(minor: int, _: Object, spec: Object) -> Violation | None:
    allowed = {name for first, names in _SYSCTLS if first <= minor for name in names}
    names = [sysctl.get("name", "") for sysctl in _security(spec).get("sysctls") or ()]
    forbidden = [name for name in names if name not in allowed]
    return Violation("forbidden sysctls", ", ".join(forbidden)) if forbidden else None


def _host_process(_: Object, spec: Object) -> Violation | None:
    setters = _setters(spec, lambda value: _nested(value, "windowsOptions", "hostProcess") is True)
    if not setters:
        return None
    return Violation(
        "hostProcess", f"{' and '.join(setters)} must not set securityContext.windowsOptions.hostProcess=true"
    )


# -- restricted -------------------------------------------------------------------------------------------------------

_VOLUMES: Final = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
)  # fmt: skip
_RESTRICTED_VOLUMES: Final = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi", "glusterfs", "rbd", "flexVolume",
    "cinder", "cephfs", "flocker", "fc", "azureFile", "vsphereVolume", "quobyte", "azureDisk", "photonPersistentDisk",
    "portworxVolume", "scaleIO", "storageos",
)  # fmt: skip


def _escalation(_: Object, spec: Object) -> Violation | None:
    bad = _bad_containers(spec, lambda container: _security(container).get("allowPrivilegeEscalation") is not False)
    if not bad:
        return None
    detail = f"{_named(bad)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def _capabilities_restricted(_: Object, spec: Object) -> Violation | None:
    keeping = _bad_containers(spec, lambda container: "ALL" not in (_nested(container, "capabilities", "drop") or ()))
    adding = _bad_containers(spec, lambda container: bool(set(_added(container)) - {"NET_BIND_SERVICE"}))
    added = sorted({name for container in _containers(spec) for name in _added(container)} - {"NET_BIND_SERVICE"})
    details = []
    if keeping:
        details.append(f'{_named(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        details.append(f"{_named(adding)} must not include {_quoted(added)} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def _restricted_volumes(_: Object, spec: Object) -> Violation | None:
    volumes = spec.get("volumes") or ()
    bad = [volume for volume in volumes if not any(volume.get(name) is not None for name in _VOLUMES)]
    if not bad:
        return None
    types = sorted(
        {next((name for name in _RESTRICTED_VOLUMES if volume.get(name) is not None), "unknown") for volume in bad}
    )
    names = [volume["name"] for volume in bad]
    what = f"{_plural(len(bad), 'uses', 'use')} {_plural(len(types), 'restricted volume type')} {_quoted(types)}"
    return Violation("restricted volume types", f"{_plural(len(bad), 'volume')} {_quoted(names)} {what}")


def _non_root(_: Object, spec: Object) -> Violation | None:
    setters = _setters(spec, lambda value: _security(value).get("runAsNonRoot") is False)
    if setters:
        detail = f"{' and '.join(setters)} must not set securityContext.runAsNonRoot=false"
        return Violation("runAsNonRoot != true", detail)
    if _security(spec).get("runAsNonRoot"):
        return None
    silent = _bad_containers(spec, lambda container: _security(container).get("runAsNonRoot") is None)
    if not silent:
        return None
    return Violation("runAsNonRoot != true", f"pod or {_named(silent)} must set securityContext.runAsNonRoot=true")


def _root_user(_: Object, spec: Object) -> Violation | None:
    setters = _setters(spec, lambda value: _security(value).get("runAsUser") == 0)
    return Violation("runAsUser=0", f"{' and '.join(setters)} must not set runAsUser=0") if setters else None


def _seccomp_restricted(annotations: Object, spec: Object) -> Violation | None:
    if violation := _seccomp_baseline(annotations, spec):
        return violation
    if _profile(spec, "seccompProfile") is not None:
        return None
    silent = _bad_containers(spec, lambda container: _profile(container, "seccompProfile") is None)
    if not silent:
        return None
    what = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {_named(silent)} {what}")


_ALL: Final = (
    _Check("appArmorProfile", "baseline", ((0, _app_armor),)),
    _Check("capabilities_baseline", "baseline", ((0, _capabilities_baseline),)),
    _Check("hostNamespaces", "baseline", ((0, _host_namespaces),)),
    _Check("hostPathVolumes", "baseline", ((0, _host_path_volumes),)),
    _Check("hostPorts", "baseline", ((0, _host_ports),)),
    _Check("hostProbesAndHostLifecycle", "baseline", ((34, _handler_hosts),)),
    _Check("privileged", "baseline", ((0, _privileged),)),
    _Check("procMount", "baseline", ((0, _proc_mount), (35, _unless_in_user_namespace(_proc_mount)))),
    _Check(
        "seLinuxOptions",
        "baseline",
        ((0, partial(_selinux, _SELINUX_TYPES)), (31, partial(_selinux, (*_SELINUX_TYPES, _ENGINE_TYPE)))),
    ),
    _Check("seccompProfile_baseline", "baseline", ((0, _seccomp_annotations), (19, _seccomp_baseline))),
    _Check("sysctls", "baseline", tuple((first, partial(_sysctls, first)) for first, _ in _SYSCTLS)),
    _Check("windowsHostProcess", "baseline", ((0, _host_process),)),
    _Check("allowPrivilegeEscalation", "restricted", ((8, _escalation), (25, _unless_windows(_escalation)))),
    _Check(
        "capabilities_restricted",
        "restricted",
        ((22, _capabilities_restricted), (25, _unless_windows(_capabilities_restricted))),
        "capabilities_baseline",
    ),
    _Check("procMount_restricted", "restricted", ((35, _proc_mount),), "procMount"),
    _Check("restrictedVolumes", "restricted", ((0, _restricted_volumes),), "hostPathVolumes"),
    _Check("runAsNonRoot", "restricted", ((0, _non_root), (35, _unless_in_user_namespace(_non_root)))),
    _Check("runAsUser", "restricted", ((23, _root_user), (35, _unless_in_user_namespace(_root_user)))),
    _Check(
        "seccompProfile_restricted",
        "restricted",
        ((19, _seccomp_restricted), (25, _unless_windows(_seccomp_restricted))),
        "seccompProfile_baseline",
    ),
)
