"""The audit policy: which requests are recorded, and how much of them (audit.k8s.io/v1 Policy).

The first rule that matches a request decides; without one the level is None. In a rule every given field must match; unlike
in RBAC `pods/*` matches pods and all their subresources. Upstream: pkg/audit/policy and pkg/apis/audit/validation.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from noxu.api import codec, field
from noxu.api.errors import aggregate, no_kind_registered
from noxu.api.field import FieldError, Path
from noxu.api.names import subdomain_name
from noxu.go.structs import BOOL, JSON, STRING, Field, List, Presence, Struct, decode, named
from noxu.registry.access import AccessAttributes, User
from noxu.values import Object

log: Final = logging.getLogger("noxu")

GROUP_VERSION: Final = "audit.k8s.io/v1"
NO_USER: Final = User("", "", ())
"""The user of a request that failed before or in authentication: no rule with users or groups matches it."""

RECEIVED: Final = "RequestReceived"
STARTED: Final = "ResponseStarted"
COMPLETE: Final = "ResponseComplete"
PANIC: Final = "Panic"
STAGES: Final = (RECEIVED, STARTED, COMPLETE, PANIC)


class Level(IntEnum):
    """How much of a request is recorded: each level has what is in those below."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3


LEVELS: Final = {
    "None": Level.NONE,
    "Metadata": Level.METADATA,
    "Request": Level.REQUEST,
    "RequestResponse": Level.REQUEST_RESPONSE,
}
LEVEL_NAMES: Final = {level: name for name, level in LEVELS.items()}


class Recording(NamedTuple):
    """What is recorded of a request."""

    level: Level
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False


class GroupResources(NamedTuple):
    """Resources of a group. `*` is every group; no `resources` means all of the group."""

    group: str = ""
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class AuditRule(NamedTuple):
    """A rule; empty fields match everything."""

    recording: Recording
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    resources: tuple[GroupResources, ...] = ()
    namespaces: frozenset[str] = frozenset()
    """"" is that of requests without a namespace."""
    paths: tuple[str, ...] = ()
    """Paths of no resource; `/healthz*` matches what begins so, `*` all."""


class AuditPolicy(NamedTuple):
    """The rules in their order, and what is recorded of requests that none of them matches: nothing."""

    rules: tuple[AuditRule, ...]
    otherwise: Recording = Recording(Level.NONE)

    def recording(self, asked: AccessAttributes) -> Recording:
        """What is recorded of a request."""
        for rule in self.rules:
            if matches(rule, asked):
                return rule.recording
        return self.otherwise


EVERYTHING: Final = AuditPolicy((AuditRule(Recording(Level.METADATA, frozenset({RECEIVED}))),))
"""The policy of a log without a policy file: the metadata of every request, in one line."""


# -- matching ---------------------------------------------------------------------------------------------------------


def matches(rule: AuditRule, asked: AccessAttributes) -> bool:
    user = asked.user
    if rule.users and (user is NO_USER or user.name not in rule.users):
        return False
    if rule.groups and rule.groups.isdisjoint(user.groups):
        return False
    if rule.verbs and asked.verb not in rule.verbs:
        return False
    if rule.namespaces or rule.resources:
        return _matches_resource(rule, asked)
    if rule.paths:
        path = asked.path
        return path is not None and any(_matches_path(pattern, path) for pattern in rule.paths)
    return True


def _matches_path(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def _matches_resource(rule: AuditRule, asked: AccessAttributes) -> bool:
    if not asked.resource or (rule.namespaces and asked.namespace not in rule.namespaces):
        return False
    return not rule.resources or any(_names(listed, asked) for listed in rule.resources)


def _names(listed: GroupResources, asked: AccessAttributes) -> bool:
    if listed.group not in (asked.group, "*"):
        return False
    if not listed.resources:
        return True
    if listed.names and asked.name not in listed.names:
        return False
    sub = asked.subresource
    wanted = {"*", f"{asked.resource}/{sub}" if sub else asked.resource, f"{asked.resource}/*"}
    return any(name in wanted or (sub and name == f"*/{sub}") for name in listed.resources)


# -- reading a policy file --------------------------------------------------------------------------------------------

_STAGES_TYPE: Final = List(named("v1.Stage"))
_GROUP_RESOURCES: Final = Struct("GroupResources").define(
    Field("group", STRING), Field("resources", List(STRING)), Field("resourceNames", List(STRING))
)
_RULE: Final = Struct("PolicyRule").define(
    Field("level", named("v1.Level")),
    Field("users", List(STRING)),
    Field("userGroups", List(STRING)),
    Field("verbs", List(STRING)),
    Field("resources", List(_GROUP_RESOURCES)),
    Field("namespaces", List(STRING)),
    Field("nonResourceURLs", List(STRING)),
    Field("omitStages", _STAGES_TYPE),
    Field("omitManagedFields", BOOL, write=Presence.POINTER),
)
_POLICY: Final = Struct("Policy").define(
    Field("kind", STRING),
    Field("apiVersion", STRING),
    Field("metadata", JSON),
    Field("rules", List(_RULE)),
    Field("omitStages", _STAGES_TYPE),
    Field("omitManagedFields", BOOL),
)


def load(text: bytes) -> AuditPolicy:
    """The policy in a file of YAML or JSON. Raises ValueError with upstream's message.

    As upstream does, unknown and repeated fields are logged as a warning, and ignored.
    """
    try:
        document = codec.decode_yaml(text)
    except ValueError as error:
        raise ValueError(f"failed decoding: {error}") from None
    value: Object = document.value or {}
    if not isinstance(value, dict):
        raise ValueError("failed decoding: a policy is an object")
    kind, api_version = value.get("kind"), value.get("apiVersion")
    if not kind and not api_version:
        raise ValueError("unknown group version field audit.k8s.io/__internal, Kind=Policy in policy")
    if (kind, api_version) != ("Policy", GROUP_VERSION):
        raise ValueError(f"failed decoding: {no_kind_registered(str(kind or ''), str(api_version or ''))}")
    decoded = decode(_POLICY, value)
    if decoded.error:
        raise ValueError(f"failed decoding: {decoded.error}")
    complaints = [*document.strict, *(f'unknown field "{path}"' for path in decoded.unknown)]
    if complaints:
        log.warning(
            "Audit policy contains errors, falling back to lenient decoding: %s",
            codec.strict_decoding_error(complaints),
        )
    policy: Object = decoded.value
    errors = list(_errors(policy))
    if errors:
        raise ValueError(aggregate(map(str, errors)))
    if not policy.get("rules"):
        raise ValueError("loaded illegal policy with 0 rules")
    return _policy(policy)


def _policy(policy: Object) -> AuditPolicy:
    stages = frozenset(policy.get("omitStages") or ())
    without_managers = bool(policy.get("omitManagedFields"))
    rules = tuple(_rule(rule, stages, without_managers=without_managers) for rule in policy["rules"])
    return AuditPolicy(rules, Recording(Level.NONE, stages, without_managers))


def _rule(rule: Object, stages: frozenset[str], *, without_managers: bool) -> AuditRule:
    omit = rule.get("omitManagedFields")
    return AuditRule(
        Recording(
            LEVELS[rule["level"]],
            stages.union(rule.get("omitStages") or ()),
            without_managers if omit is None else omit,
        ),
        users=frozenset(rule.get("users") or ()),
        groups=frozenset(rule.get("userGroups") or ()),
        verbs=frozenset(rule.get("verbs") or ()),
        resources=tuple(
            GroupResources(
                listed.get("group") or "",
                tuple(listed.get("resources") or ()),
                tuple(listed.get("resourceNames") or ()),
            )
            for listed in rule.get("resources") or ()
        ),
        namespaces=frozenset(rule.get("namespaces") or ()),
        paths=tuple(rule.get("nonResourceURLs") or ()),
    )


def _errors(policy: Object) -> Iterator[FieldError]:
    yield from _stage_errors(policy.get("omitStages") or (), "omitStages")
    for n, rule in enumerate(policy.get("rules") or ()):
        yield from _rule_errors(rule or {}, field.index("rules", n))


def _rule_errors(rule: Object, path: Path) -> Iterator[FieldError]:
    level, urls = rule.get("level") or "", rule.get("nonResourceURLs") or []
    if not level:
        yield field.required(f"{path}.level")
    elif level not in LEVELS:
        yield field.not_supported(f"{path}.level", level, list(LEVELS))
    for n, url in enumerate(urls):
        yield from _url_errors(url, f"{path}.nonResourceURLs[{n}]")
    for listed in rule.get("resources") or ():
        yield from _resource_errors(listed or {}, f"{path}.resources")  # upstream's path has no index
    yield from _stage_errors(rule.get("omitStages") or (), f"{path}.omitStages")
    if urls and (rule.get("resources") or rule.get("namespaces")):
        text = "rules cannot apply to both regular resources and non-resource URLs"
        yield field.invalid(f"{path}.nonResourceURLs", urls, text)


def _url_errors(url: str, path: Path) -> Iterator[FieldError]:
    if url == "*":
        return
    if not url.startswith("/"):
        yield field.invalid(path, url, "non-resource URL rules must begin with a '/' character")
    if "*" in url[:-1]:
        yield field.invalid(path, url, "non-resource URL wildcards '*' must be the final character of the rule")


def _resource_errors(listed: Object, path: Path) -> Iterator[FieldError]:
    group, names = listed.get("group") or "", listed.get("resourceNames") or []
    if group not in ("", "*"):
        wrong = subdomain_name(group)
        if wrong:
            yield field.invalid(f"{path}.group", group, ",".join(wrong))
    if names and not listed.get("resources"):
        yield field.invalid(f"{path}.resourceNames", names, "using resourceNames requires at least one resource")


def _stage_errors(stages: list[str] | tuple[()], path: Path) -> Iterator[FieldError]:
    for n, stage in enumerate(stages):
        if stage not in STAGES:
            yield field.invalid(field.index(path, n), stage, f"allowed stages are {','.join(STAGES)}")
