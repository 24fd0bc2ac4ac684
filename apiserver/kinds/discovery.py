"""Discovery documents as tables: meta/v1 and aggregated (apidiscovery.k8s.io/v2)."""

from __future__ import annotations

from typing import Final

from noxu.apiserver.api.meta import OBJECT_META
from noxu.apiserver.go.structs import BOOL, STRING, Field, List, Struct, named
from noxu.apiserver.kinds.meta import ALWAYS, POINTER, TYPE_META, list_of

GROUP_VERSION_FOR_DISCOVERY: Final = Struct("GroupVersionForDiscovery").define(
    Field("groupVersion", STRING, 1, ALWAYS),
    Field("version", STRING, 2, ALWAYS),
)
SERVER_ADDRESS_BY_CLIENT_CIDR: Final = Struct("ServerAddressByClientCIDR").define(
    Field("clientCIDR", STRING, 1, ALWAYS),
    Field("serverAddress", STRING, 2, ALWAYS),
)
API_GROUP: Final = Struct("APIGroup").define(
    *TYPE_META,
    Field("name", STRING, 1, ALWAYS),
    Field("versions", List(GROUP_VERSION_FOR_DISCOVERY), 2, ALWAYS, list_type="atomic"),
    Field("preferredVersion", GROUP_VERSION_FOR_DISCOVERY, 3, ALWAYS),
    Field("serverAddressByClientCIDRs", List(SERVER_ADDRESS_BY_CLIENT_CIDR), 4, list_type="atomic"),
)
API_GROUP_LIST: Final = Struct("APIGroupList").define(
    *TYPE_META,
    Field("groups", List(API_GROUP), 1, ALWAYS, list_type="atomic"),
)
API_RESOURCE: Final = Struct("APIResource").define(
    Field("name", STRING, 1, ALWAYS),
    Field("singularName", STRING, 6, ALWAYS),
    Field("namespaced", BOOL, 2, ALWAYS),
    Field("group", STRING, 8),
    Field("version", STRING, 9),
    Field("kind", STRING, 3, ALWAYS),
    Field("verbs", List(STRING, "v1.Verbs", wrapped=True), 4, ALWAYS),
    Field("shortNames", List(STRING), 5, list_type="atomic"),
    Field("categories", List(STRING), 7, list_type="atomic"),
    Field("storageVersionHash", STRING, 10),
)
API_RESOURCE_LIST: Final = Struct("APIResourceList").define(
    *TYPE_META,
    Field("groupVersion", STRING, 1, ALWAYS),
    Field("resources", List(API_RESOURCE), 2, ALWAYS, list_type="atomic"),
)
API_VERSIONS: Final = Struct("APIVersions").define(
    *TYPE_META,
    Field("versions", List(STRING), 1, ALWAYS, list_type="atomic"),
    Field("serverAddressByClientCIDRs", List(SERVER_ADDRESS_BY_CLIENT_CIDR), 2, ALWAYS, list_type="atomic"),
)
GROUP_VERSION_KIND: Final = Struct("GroupVersionKind").define(
    Field("group", STRING, 1, ALWAYS),
    Field("version", STRING, 2, ALWAYS),
    Field("kind", STRING, 3, ALWAYS),
)
API_SUBRESOURCE_DISCOVERY: Final = Struct("APISubresourceDiscovery", package="v2").define(
    Field("subresource", STRING, 1, ALWAYS),
    Field("responseKind", GROUP_VERSION_KIND, 2, POINTER),
    Field(
        "acceptedTypes",
        List(GROUP_VERSION_KIND),
        3,
        list_type="map",
        list_keys=("group", "version", "kind"),
    ),
    Field("verbs", List(STRING), 4, ALWAYS, list_type="set"),
)
API_RESOURCE_DISCOVERY: Final = Struct("APIResourceDiscovery", package="v2").define(
    Field("resource", STRING, 1, ALWAYS),
    Field("responseKind", GROUP_VERSION_KIND, 2, POINTER),
    Field("scope", named("v2.ResourceScope"), 3, ALWAYS),
    Field("singularResource", STRING, 4, ALWAYS),
    Field("verbs", List(STRING), 5, ALWAYS, list_type="set"),
    Field("shortNames", List(STRING), 6, list_type="set"),
    Field("categories", List(STRING), 7, list_type="set"),
    Field("subresources", List(API_SUBRESOURCE_DISCOVERY), 8, list_type="map", list_keys=("subresource",)),
)
API_VERSION_DISCOVERY: Final = Struct("APIVersionDiscovery", package="v2").define(
    Field("version", STRING, 1, ALWAYS),
    Field("resources", List(API_RESOURCE_DISCOVERY), 2, list_type="map", list_keys=("resource",)),
    Field("freshness", named("v2.DiscoveryFreshness"), 3),
)
API_GROUP_DISCOVERY: Final = Struct("APIGroupDiscovery", package="v2").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
    Field("versions", List(API_VERSION_DISCOVERY), 2, list_type="map", list_keys=("version",)),
)
API_GROUP_DISCOVERY_LIST: Final = list_of(API_GROUP_DISCOVERY)
