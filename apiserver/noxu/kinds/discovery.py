"""Discovery documents as tables: meta/v1 and aggregated (apidiscovery.k8s.io/v2)."""

from __future__ import annotations

from typing import Final

from noxu.kinds.facts import struct
from noxu.kinds.meta import list_of

API_GROUP: Final = struct("meta/v1.APIGroup")
API_GROUP_LIST: Final = struct("meta/v1.APIGroupList")
API_RESOURCE_LIST: Final = struct("meta/v1.APIResourceList")
API_VERSIONS: Final = struct("meta/v1.APIVersions")
API_GROUP_DISCOVERY: Final = struct("apidiscovery/v2.APIGroupDiscovery")
API_GROUP_DISCOVERY_LIST: Final = list_of(API_GROUP_DISCOVERY)
