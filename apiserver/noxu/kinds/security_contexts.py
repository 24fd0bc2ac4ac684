"""Security contexts of pods and containers: users, profiles, sysctls, and the fields that Windows does not have.

The rules are those of k8s.io/kubernetes pkg/apis/core/validation: ValidateSecurityContext,
validatePodSpecSecurityContext, validateOS and the functions below them. Privileged containers are allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from noxu.api import field
from noxu.api.field import Path, as_json
from noxu.api.names import dns1123_subdomain
from noxu.kinds import checks
from noxu.kinds.checks import Errors
from noxu.values import Object

_PROFILES: Final = ["Localhost", "RuntimeDefault", "Unconfined"]
_MAX_PROFILE: Final = 4095  # bytes of a path, without the zero at its end
_SYSCTL_PATTERN: Final = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_is_sysctl: Final = re.compile(_SYSCTL_PATTERN.replace("$", r"\Z")).match
_IPC_SYSCTLS: Final = ("kernel.shm", "kernel.msg", "fs.mqueue.")
_WINDOWS: Final = "cannot be set for a windows pod"


def containers(spec: Object, path: Path) -> Iterator[tuple[Object, Path]]:
    """All containers of a pod with their paths (VisitContainersWithPath)."""
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for n, container in enumerate(spec.get(kind) or ()):
            yield container, f"{path}.{kind}[{n}]"


def of_container(context: Object, path: Path, *, host_users: bool) -> Errors:
    """The security context of a container."""
    yield from _ids(context, path, ("runAsUser", "runAsGroup"))
    mount = context.get("procMount")
    if mount is not None:
        yield from checks.choice(mount, "core/v1.ProcMountType", f"{path}.procMount", declared=True)
        if host_users and mount == "Unmasked":
            yield field.invalid(f"{path}.procMount", as_json(mount), "`hostUsers` must be false to use `Unmasked`")
    yield from _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        value = checks.struct_json("core/v1.SecurityContext", context)
        if context.get("privileged"):
            yield field.invalid(path, value, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            rule = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield field.invalid(path, value, rule)
    yield from _windows_options(context.get("windowsOptions"), f"{path}.windowsOptions")
    yield from _app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def of_pod(spec: Object, path: Path) -> Errors:
    """The security context of a pod. `path` is that of the spec."""
    context: Object = spec.get("securityContext") or {}
    shares_processes = spec.get("shareProcessNamespace") and spec.get("hostPID")
    if not context and not shares_processes:
        return
    path = f"{path}.securityContext"
    yield from _ids(context, path, ("fsGroup", "runAsUser", "runAsGroup"))
    for n, group in enumerate(context.get("supplementalGroups") or ()):
        yield from checks.in_range(group, 0, checks.MAX_INT32, f"{path}.supplementalGroups[{n}]")
    if shares_processes:
        rule = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield field.invalid(f"{path}.shareProcessNamespace", True, rule)
    seen: set[str] = set()
    for n, sysctl in enumerate(context.get("sysctls") or ()):
        yield from _sysctl(sysctl.get("name", ""), seen, spec, f"{path}.sysctls[{n}].name")
    yield from checks.choice(
        context.get("fsGroupChangePolicy"), "core/v1.PodFSGroupChangePolicy", f"{path}.fsGroupChangePolicy"
    )
    yield from _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    yield from _windows_options(context.get("windowsOptions"), f"{path}.windowsOptions")
    yield from _app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile")
    for name, type_ in (
        ("supplementalGroupsPolicy", "core/v1.SupplementalGroupsPolicy"),
        ("seLinuxChangePolicy", "core/v1.PodSELinuxChangePolicy"),
    ):
        yield from checks.choice(context.get(name), type_, f"{path}.{name}")


def host_users(spec: Object, path: Path) -> Errors:
    """User namespaces exclude those of the host."""
    if spec.get("hostUsers") is False:
        for name, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(name):
                yield field.forbidden(f"{path}.{shown}", "when `pod.Spec.HostUsers` is false")


def _ids(context: Object, path: Path, names: tuple[str, ...]) -> Errors:
    for name in names:
        if context.get(name) is not None:
            yield from checks.in_range(context[name], 0, checks.MAX_INT32, f"{path}.{name}")


def _sysctl(name: str, seen: set[str], spec: Object, path: Path) -> Errors:
    """`seen` are the names of earlier ones, and extended."""
    if not name:
        yield field.required(path)
    elif len(name) > 253 or not _is_sysctl(name):
        yield field.invalid(path, name, f"must have at most 253 characters and match regex {_SYSCTL_PATTERN}")
    elif name in seen:
        yield field.duplicate(path, name)
    seen.add(name)
    dotted = name.replace("/", ".")
    if spec.get("hostNetwork") and dotted.startswith("net."):
        yield field.invalid(path, name, "may not be specified when 'hostNetwork' is true")
    elif spec.get("hostIPC") and (dotted.startswith(_IPC_SYSCTLS) or dotted == "kernel.sem"):
        yield field.invalid(path, name, "may not be specified when 'hostIPC' is true")


def _seccomp(seccomp_profile: Object | None, path: Path) -> Errors:
    if seccomp_profile is None:
        return
    kind, profile = seccomp_profile.get("type", ""), seccomp_profile.get("localhostProfile")
    if not kind:
        yield field.required(f"{path}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        yield field.not_supported(f"{path}.type", as_json(kind), _PROFILES)
    path = f"{path}.localhostProfile"
    if kind != "Localhost":
        if profile is not None:
            value = checks.struct_json("core/v1.SeccompProfile", seccomp_profile)
            yield field.invalid(path, value, "can only be set when seccomp type is Localhost")
    elif profile is None:
        yield field.required(path, "must be set when seccomp type is Localhost")
    else:
        yield from checks.descending(profile, path)


def _app_armor(app_armor_profile: Object | None, path: Path) -> Errors:
    if app_armor_profile is None:
        return
    kind, profile = app_armor_profile.get("type", ""), app_armor_profile.get("localhostProfile")
    if not kind:
        yield field.required(f"{path}.type", "type is required when appArmorProfile is set")
        return
    if kind not in _PROFILES:
        yield field.not_supported(f"{path}.type", as_json(kind), _PROFILES)
        return
    path = f"{path}.localhostProfile"
    if kind != "Localhost":
        if profile is not None:
            yield field.invalid(path, profile, "can only be set when AppArmor type is Localhost")
        return
    if not profile:
        yield field.required(path, "must be set when AppArmor type is Localhost")
    elif profile.strip() != profile:
        yield field.invalid(path, profile, "must not be padded with whitespace")
    if profile and len(profile.encode("utf-8", "surrogatepass")) > _MAX_PROFILE:
        yield field.too_long(path, _MAX_PROFILE)


def _windows_options(options: Object | None, path: Path) -> Errors:
    if options is None:
        return
    name, content, user = (
        options.get(key) for key in ("gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName")
    )
    if name is not None:
        yield from (field.invalid(f"{path}.gmsaCredentialSpecName", name, text) for text in dns1123_subdomain(name))
    if content == "":
        yield field.invalid(f"{path}.gmsaCredentialSpec", content, "gmsaCredentialSpec cannot be an empty string")
    if user == "":
        yield field.invalid(f"{path}.runAsUserName", user, "runAsUserName cannot be an empty string")


def host_process(spec: Object, path: Path) -> Errors:
    """HostProcess containers of Windows: all containers or none, and in the network of the host."""
    for_pod = ((spec.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
    count = host_processes = 0
    for container, where in containers(spec, path):
        own = ((container.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
        if for_pod is not None and own is not None and own != for_pod:
            rule = f"pod hostProcess value must be identical if both are specified, was {str(for_pod).lower()}"
            yield field.invalid(f"{where}.securityContext.windowsOptions.hostProcess", own, rule)
        count += 1
        host_processes += bool(for_pod if own is None else own)
    if not host_processes:
        return
    if host_processes != count:
        rule = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield field.invalid(path, "", rule)
    if not spec.get("hostNetwork"):
        rule = "hostNetwork must be true if pod contains any hostProcess containers"
        yield field.invalid(f"{path}.hostNetwork", False, rule)


_NOT_OF_WINDOWS_PODS: Final = (
    "securityContext.appArmorProfile", "securityContext.seLinuxOptions", "hostUsers", "hostPID", "hostIPC",
    "securityContext.seccompProfile", "securityContext.fsGroup", "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls", "shareProcessNamespace", "securityContext.runAsUser", "securityContext.runAsGroup",
    "securityContext.supplementalGroups", "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
)  # fmt: skip
_NOT_OF_WINDOWS_CONTAINERS: Final = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip


def operating_system(spec: Object, path: Path) -> Errors:
    """The system of a pod, and the fields that it excludes."""
    name = spec["os"].get("name", "")
    if not name:
        yield field.required(f"{path}.os.name", "cannot be empty")
    elif name not in checks.choices("core/v1.OSName"):
        yield field.not_supported(f"{path}.os", as_json(name), checks.choices("core/v1.OSName"))
    elif name == "linux":
        rule = "windows options cannot be set for a linux pod"
        for holder, where in ((spec, path), *containers(spec, path)):
            if (holder.get("securityContext") or {}).get("windowsOptions") is not None:
                yield field.forbidden(f"{where}.securityContext.windowsOptions", rule)
    else:
        for dotted in _NOT_OF_WINDOWS_PODS:
            above, _, last = dotted.rpartition(".")
            if ((spec.get(above) or {}) if above else spec).get(last) is not None:
                yield field.forbidden(f"{path}.{dotted}", _WINDOWS)
        for container, where in containers(spec, path):
            for last in _NOT_OF_WINDOWS_CONTAINERS:
                if (container.get("securityContext") or {}).get(last) is not None:
                    yield field.forbidden(f"{where}.securityContext.{last}", _WINDOWS)
