"""The media types of patches, and which of them kinds accept, in the order in which errors and OpenAPI list them."""

from __future__ import annotations

from typing import Final

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
APPLY_CBOR: Final = "application/apply-patch+cbor"
APPLY_PATCHES: Final = (APPLY_PATCH, APPLY_CBOR)
CUSTOM_PATCHES: Final = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
BUILT_IN_PATCHES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)
