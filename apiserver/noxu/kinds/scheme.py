"""The built-in kinds by name (upstream's runtime.Scheme): the served ones, and the structs of bodies.

`data/kinds.json` has the kinds; the modules beside this one have their rules in code.

Names of objects may have conditions beyond their syntax: on the length, or on other fields. `data/kinds.json` has these
as `nameAlso`, beside the rule for the syntax (the ValidateName functions of the kinds in upstream's
pkg/apis/*/validation).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from importlib import import_module
from typing import Final

from noxu.api import names
from noxu.api.names import NameRule, path_segment_name, subdomain_name
from noxu.cpu_budget import require_imported
from noxu.crd import types as crd
from noxu.expressions import expression
from noxu.go.structs import List, Map, Struct, Type
from noxu.go.text import quote
from noxu.kinds import authorization, core, defaults, facts, meta
from noxu.kinds.addresses import address_texts
from noxu.kinds.kind import METADATA_LABELS, STORED_VERBS, Drop, Kind, Label, Propagation, Rules, Subresource
from noxu.releases import NEWEST, OLDEST
from noxu.values import Object, nested_field


def ip_name(name: str, prefix: bool = False) -> list[str]:  # noqa: ARG001
    """The name is an address, as Go prints it. Such names are not generated."""
    return address_texts(name)


def with_conditions(rule: NameRule, conditions: Object) -> Callable[[Object], NameRule]:
    """The rule for the name of an object, given the object."""
    if "maxLength" in conditions:
        return lambda _: _limited(rule, conditions["maxLength"])
    if "equals" in conditions:
        return lambda value: _equal_to(_joined(value, conditions["equals"]), conditions["equals"])
    if "prefixFrom" in conditions:
        return lambda value: _with_prefix_from(nested_field(value, conditions["prefixFrom"]) or "", conditions)
    return lambda _: rule


def _limited(rule: NameRule, limit: int) -> NameRule:
    def check(name: str, prefix: bool = False) -> list[str]:
        return [*([f"must be no more than {limit} characters"] if len(name) > limit else []), *rule(name, prefix)]

    return check


def _joined(value: Object, parts: list[str]) -> str:
    """Paths and texts: `spec.version`, `.`, `spec.group`."""
    return "".join(nested_field(value, part) or "" if part.startswith("spec.") else part for part in parts)


def _equal_to(expected: str, parts: list[str]) -> NameRule:
    described: Final = "+".join(part if part.startswith("spec.") else quote(part) for part in parts)

    def check(name: str, prefix: bool = False) -> list[str]:
        wrong = path_segment_name(name, prefix)
        return wrong or ([] if name == expected else [f"must be `{described}`: {quote(expected)}"])

    return check


def _with_prefix_from(source: str, conditions: Object) -> NameRule:
    """The name begins with a field in which `replace` is replaced; without it, the name cannot be mistaken for one."""
    old, new = conditions["replace"]
    beginning = f"{source.replace(old, new)}{new}"

    def check(name: str, prefix: bool = False) -> list[str]:
        if source and not name.startswith(beginning):
            return [f"ClusterTrustBundle for signerName {source} must be named with prefix {beginning}"]
        if not source and new in name:
            return [f"ClusterTrustBundle without signer name must not have {quote(new)} in its name"]
        return subdomain_name(name.removeprefix(beginning) if source else name, prefix)

    return check


# -- scheme -----------------------------------------------------------------------------------------------------------


_NAME_RULES: Final = {
    "subdomain": names.subdomain_name,
    "subdomainCaseless": names.caseless_subdomain_name,
    "label": names.label_name,
    "pathSegment": names.path_segment_name,
    "ip": ip_name,
}
_RETURNED_WHEN_DELETED: Final = frozenset(
    {"pods", "services", "serviceaccounts", "namespaces", "persistentvolumeclaims", "persistentvolumes", "podtemplates",
     "resourcequotas", "storageclasses", "csidrivers", "csinodes", "volumeattachments", "volumeattributesclasses",
     "deviceclasses", "devicetaintrules", "resourceclaims", "resourceclaimtemplates", "resourceslices"}
)  # fmt: skip
"""Resources whose storage in upstream has ReturnDeletedObject."""
_PROPAGATION: Final[dict[tuple[str, str], Propagation]] = {
    ("", "ReplicationController"): "Orphan",
    ("batch", "Job"): "Orphan",
    ("", "Event"): "Unsupported",
    ("events.k8s.io", "Event"): "Unsupported",
}
"""The kinds with a DefaultGarbageCollectionPolicy of their own in upstream."""


_RULES: Final[dict[str, tuple[str, ...]]] = {
    "": ("core.RULES", "events.RULES", "services.RULES"),
    "admissionregistration.k8s.io": ("admissionregistration.RULES",),
    "apiregistration.k8s.io": ("apiregistration.RULES",),
    "apps": ("workloads.RULES",),
    "authorization.k8s.io": ("authorization.RULES",),
    "autoscaling": ("autoscalers.RULES",),
    "batch": ("jobs.RULES",),
    "certificates.k8s.io": ("certificates.RULES",),
    "coordination.k8s.io": ("nodes.LEASE_RULES",),
    "discovery.k8s.io": ("endpoints.DISCOVERY_RULES",),
    "events.k8s.io": ("events.NEW_RULES",),
    "flowcontrol.apiserver.k8s.io": ("flowcontrol.RULES",),
    "networking.k8s.io": ("networking.RULES",),
    "node.k8s.io": ("nodes.NODE_RULES",),
    "policy": ("scheduling.DISRUPTION_RULES",),
    "rbac.authorization.k8s.io": ("authorization.RBAC_RULES",),
    "resource.k8s.io": ("devices.RULES",),
    "scheduling.k8s.io": ("scheduling.RULES",),
    "storage.k8s.io": ("storage.RULES",),
    "storagemigration.k8s.io": ("storage.MIGRATION_RULES",),
}
"""Where in this package the rules of a group are, by kind. A module is imported when the first object is written that needs it."""
_RULES_OF_KINDS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "Endpoints"): ("endpoints.RULES",),
    ("", "LimitRange"): ("quotas.RULES",),
    ("", "Node"): ("nodes.RULES",),
    ("", "PersistentVolume"): ("persistent_volumes.RULES",),
    ("", "PersistentVolumeClaim"): ("persistent_volumes.RULES",),
    ("", "Pod"): ("pods.RULES",),
    ("", "PodTemplate"): ("pods.RULES",),
    ("", "ReplicationController"): ("workloads.CORE_RULES",),
    ("", "ResourceQuota"): ("quotas.RULES",),
}
"""The rules of kinds whose modules the rest of the group, of which the server itself writes objects, does not need."""
_LONG: Final = "pods.RULES"  # takes longer to import than all others


@cache
def _rules_of(group: str, kind: str) -> Rules:
    for place in _RULES_OF_KINDS.get((group, kind)) or _RULES.get(group, ()):
        module, _, name = place.partition(".")
        if place == _LONG:
            require_imported(f"{__package__}.{module}", name)
        rules: Mapping[str, Rules] = getattr(import_module(f"{__package__}.{module}"), name)
        if kind in rules:
            return rules[kind]
    return Rules()


def served(release: int = NEWEST) -> tuple[Kind, ...]:
    """All kinds, in the order of discovery, with the fields that they have in a release.

    A kind is compared by identity: threads that ask at the same time get the same kinds (dict.setdefault is atomic).
    """
    return _SERVED.get(release) or _SERVED.setdefault(release, kinds_of(facts.read(_KINDS), release))


_KINDS: Final = "kinds.json"
_SERVED: Final[dict[int, tuple[Kind, ...]]] = {}


def kinds_of(declarations: list[Object], release: int = NEWEST) -> tuple[Kind, ...]:
    """The kinds that the data describes."""
    return tuple(_kind(declaration, release) for declaration in declarations)


_GATES: Final = f"{__package__}.gates"


def _dropper(struct: Struct, release: int) -> Drop | None:
    """What drops fields whose gate is off; the newest release has no such function, and its module is not imported."""
    found: Drop | None = None if release == NEWEST else import_module(_GATES).dropper(struct, release)
    return found


def _kind(declaration: Object, release: int) -> Kind:
    strategy, labels = declaration.get("strategy", {}), declaration.get("selectable", {})
    group, kind, plural = declaration["group"], declaration["kind"], declaration["plural"]
    name_rule = _NAME_RULES[declaration.get("nameRule", "pathSegment")]
    struct = facts.struct(declaration["type"], release)
    return Kind(
        group=group,
        version=declaration["version"],
        kind=kind,
        struct=struct,
        plural=plural,
        singular=declaration.get("singular", kind.lower()),
        namespaced=declaration["namespaced"],
        short_names=tuple(declaration.get("shortNames", ())),
        categories=tuple(declaration.get("categories", ())),
        verbs=tuple(declaration.get("verbs", STORED_VERBS)),
        subresources=tuple(
            _subresource(item, declaration["type"], release) for item in declaration.get("subresources", ())
        ),
        name_rule=name_rule,
        name_rule_for=with_conditions(name_rule, declaration["nameAlso"]) if "nameAlso" in declaration else None,
        deprecation=_deprecation(declaration),
        unconditional_update=strategy.get("unconditionalUpdate", True),
        create_on_update=strategy.get("createOnUpdate", False),
        generation=tuple(strategy.get("generation", {}).get("on", ())),
        first_generation=strategy.get("generation", {}).get("create"),
        fresh=tuple(strategy.get("fresh", ())),
        initial=strategy.get("initial", {}),
        kept=tuple(strategy.get("kept", ())),
        reset=tuple(strategy["reset"]) if "reset" in strategy else None,
        lifetime=strategy.get("lifetime", 0),
        propagation=_PROPAGATION.get((group, kind), "Background"),
        returns_deleted=plural in _RETURNED_WHEN_DELETED,
        metadata_labels=tuple(labels.get("metadata", METADATA_LABELS)),
        selectable={
            name: Label(tuple(item["paths"]), item.get("missing", ""))
            for name, item in labels.get("fields", {}).items()
        },
        unknown_label=labels.get("message", ""),
        fill=partial(defaults.defaulter, declaration["type"], release),
        drop=partial(_dropper, struct, release),
        load_rules=partial(_rules_of, group, kind),
    )


def _subresource(declaration: Object, type_of_kind: str, release: int) -> Subresource:
    is_own = declaration["type"] == type_of_kind
    return Subresource(
        name=declaration["name"],
        verbs=tuple(declaration["verbs"]),
        kept=tuple(declaration.get("kept", ())),
        only=tuple(declaration.get("only", ())),
        reset=tuple(declaration["reset"]) if "reset" in declaration else None,
        body=None if is_own else facts.struct(declaration["type"], release),
        body_group=declaration["group"],
        body_version=declaration["version"],
        scale=declaration.get("scale"),
        connect=declaration.get("connect", False),
    )


def _deprecation(declaration: Object) -> str:
    if "deprecated" not in declaration:
        return ""
    version = f"{declaration['group']}/{declaration['version']}" if declaration["group"] else declaration["version"]
    replacement = declaration.get("replacement")
    advice = f"; use {replacement['group']}/{replacement['version']} {replacement['kind']}" if replacement else ""
    return f"{version} {declaration['kind']} is deprecated in v{declaration['deprecated']}+{advice}"


def by_group_kind(release: int = NEWEST) -> dict[tuple[str, str], Kind]:
    """All kinds by (apiVersion, kind)."""
    return _by_group_kind(release)


@cache
def _by_group_kind(release: int) -> dict[tuple[str, str], Kind]:
    return {(kind.api_version, kind.kind): kind for kind in served(release)}


def field_since(api_version: str, kind: str, path: str) -> int | None:
    """The release that a field such as `spec.containers[0].resizePolicy` of a built-in kind came with.

    None: it is older, or there is no such field.
    """
    steps = _INDEX.sub("", path).split(".")
    tables = {release: by_group_kind(release).get((api_version, kind)) for release in range(OLDEST, NEWEST + 1)}
    having = [release for release, table in tables.items() if table is not None and _has(table.struct, steps)]
    return having[0] if having and having[0] > OLDEST else None


_INDEX: Final = expression(r"\[[^]]*\]")


def _has(type_: Type, steps: list[str]) -> bool:
    for step in steps:
        while isinstance(type_, (List, Map)):
            type_ = type_.element
        field = type_.fields.get(step) if isinstance(type_, Struct) else None
        if field is None:
            return False
        type_ = field.type
    return True


@lru_cache(maxsize=256)
def struct_of(api_version: str, kind: str) -> Struct | None:
    """The struct of a kind in requests and responses other than custom resources: for `noxu.api.protobuf`.

    The options and Status of meta/v1 are known in every group, as upstream registers them.
    """
    registered = by_group_kind().get((api_version, kind))
    if registered is not None:
        return registered.struct
    item = by_group_kind().get((api_version, kind.removesuffix("List")))
    if item is not None and item.stored:
        return meta.list_of(item.struct)
    other_structs = {
        "v1": (meta.STATUS, core.LIST, meta.API_GROUP, meta.API_GROUP_LIST, meta.API_RESOURCE_LIST,
               meta.API_VERSIONS),
        "meta.k8s.io/v1": (meta.STATUS, meta.PARTIAL_OBJECT_METADATA, meta.PARTIAL_OBJECT_METADATA_LIST),
        "autoscaling/v1": (meta.SCALE,),
        "authentication.k8s.io/v1": (authorization.TOKEN_REQUEST,),
        crd.API_VERSION: (crd.CRD, meta.list_of(crd.CRD)),
        "apidiscovery.k8s.io/v2": (meta.API_GROUP_DISCOVERY_LIST,),
    }  # fmt: skip
    named = {struct.name: struct for struct in (*other_structs.get(api_version, ()), *meta.ALL)}
    return named.get(kind) or _bodies().get((api_version, kind))


@cache
def _bodies() -> dict[tuple[str, str], Struct]:
    """The structs of the bodies of subresources by (apiVersion, kind)."""
    parts = [part for kind in served() for part in kind.subresources if not part.connect]
    return {
        (f"{part.body_group}/{part.body_version}".lstrip("/"), part.body.name): part.body for part in parts if part.body
    }
