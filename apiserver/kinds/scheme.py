"""The built-in kinds by name (upstream's runtime.Scheme): those that are served, and the structs of bodies."""

from __future__ import annotations

from functools import cache, lru_cache

from noxu.apiserver.go.structs import Struct
from noxu.apiserver.kinds.kind import Kind


@cache
def served() -> tuple[Kind, ...]:
    """All kinds, in the order of discovery. The tables are imported by the first call, not at start-up."""
    from noxu.apiserver.kinds import (
        admissionregistration,
        authentication,
        authorization,
        coordination,
        core,
        events,
        services,
    )

    modules = (core, services, admissionregistration, authentication, authorization, coordination, events)
    return tuple(kind for module in modules for kind in module.KINDS)


@cache
def by_group_kind() -> dict[tuple[str, str], Kind]:
    """All kinds by (apiVersion, kind)."""
    return {(kind.api_version, kind.kind): kind for kind in served()}


@lru_cache(maxsize=256)
def struct_of(api_version: str, kind: str) -> Struct | None:
    """The struct of a kind in requests and responses other than custom resources: for `noxu.apiserver.api.protobuf`.

    The options and Status of meta/v1 are known in every group, as upstream registers them.
    """
    from noxu.apiserver.crd import types as crd
    from noxu.apiserver.kinds import authentication, autoscaling, core, discovery, meta, options

    found = by_group_kind().get((api_version, kind))
    if found is not None:
        return found.struct
    item = by_group_kind().get((api_version, kind.removesuffix("List")))
    if item is not None and item.stored:
        return meta.list_of(item.struct)
    others = {
        "v1": (meta.STATUS, core.LIST, discovery.API_GROUP, discovery.API_GROUP_LIST, discovery.API_RESOURCE_LIST,
               discovery.API_VERSIONS),
        "meta.k8s.io/v1": (meta.STATUS, meta.PARTIAL_OBJECT_METADATA, meta.PARTIAL_OBJECT_METADATA_LIST),
        "autoscaling/v1": (autoscaling.SCALE,),
        "authentication.k8s.io/v1": (authentication.TOKEN_REQUEST,),
        crd.API_VERSION: (crd.CRD, meta.list_of(crd.CRD)),
        "apidiscovery.k8s.io/v2": (discovery.API_GROUP_DISCOVERY_LIST,),
    }  # fmt: skip
    named = {struct.name: struct for struct in (*others.get(api_version, ()), *options.ALL)}
    return named.get(kind)
