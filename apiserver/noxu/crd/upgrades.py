"""What a new version of a CRD no longer serves, keeps or accepts: the findings of its upgrade.

Both are CRDs of v1 as they are decoded. Servers accept most of these changes: it is stored objects and clients that break.
Versions are compared by their names. What a server refuses by itself, such as another scope of a CRD that is established, is
found as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noxu.api.field import Path, child, index
from noxu.go.text import compact_json
from noxu.schema.narrowing import Narrowing
from noxu.schema.narrowing import narrowings as schema_narrowings
from noxu.values import Json, Object, equal

_VERSIONS: Final = "spec.versions"
_NAMES: Final = (("plural", "plural"), ("kind", "kind"), ("singular", "singular"), ("listKind", "listKind"))
_LISTS_OF_NAMES: Final = (("shortNames", "short name"), ("categories", "category"))
_SCALE_PATHS: Final = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")


def narrowings(old: Object, new: Object) -> list[Narrowing]:
    """The findings in the new CRD; paths are in it, even if the field is not in it any more. None if one has no versions."""
    before, now = old.get("spec") or {}, new.get("spec") or {}
    if not (before.get("versions") and now.get("versions")):
        return []
    return [
        *_of_spec(before, now),
        *_of_names(before.get("names") or {}, now.get("names") or {}),
        *_of_versions(before, now, (old.get("status") or {}).get("storedVersions") or []),
        *_of_conversion(before.get("conversion") or {}, now.get("conversion") or {}),
    ]


def _of_spec(old: Object, new: Object) -> Iterator[Narrowing]:
    if old.get("scope") != new.get("scope"):
        yield Narrowing(
            "scope-changed", "spec.scope", f"the scope was {old.get('scope')}, and is {new.get('scope')} now"
        )
    if old.get("preserveUnknownFields") and not new.get("preserveUnknownFields"):
        yield Narrowing("no-longer-kept", "spec.preserveUnknownFields", "unknown fields were kept; now they are pruned")


def _of_names(old: Object, new: Object) -> Iterator[Narrowing]:
    for field, name in _NAMES:
        if old.get(field) and old[field] != new.get(field):
            now = f"is {new[field]} now" if new.get(field) else "is none now"
            yield Narrowing("names-changed", f"spec.names.{field}", f"the {name} was {old[field]}, and {now}")
    for field, name in _LISTS_OF_NAMES:
        for gone in [each for each in old.get(field) or () if each not in (new.get(field) or ())]:
            yield Narrowing("names-changed", f"spec.names.{field}", f"the {name} {gone} is gone")


def _of_versions(old: Object, new: Object, stored: list[Json]) -> Iterator[Narrowing]:
    versions = {each.get("name"): (n, each) for n, each in enumerate(new.get("versions") or ())}
    for before in old.get("versions") or ():
        name = before.get("name")
        if name not in versions:
            may_be_stored = name in stored or before.get("storage")
            why = "; objects may be stored in it: `noxu migrate` rewrites them" if may_be_stored else ""
            if before.get("served") or may_be_stored:
                yield Narrowing("version-removed", _VERSIONS, f"version {name} is removed{why}")
            continue
        n, now = versions[name]
        yield from _of_version(before, now, index(_VERSIONS, n))
    storage, other = _storage(old), _storage(new)
    if storage and other and storage != other and other in versions:
        path = child(index(_VERSIONS, versions[other][0]), "storage")
        yield Narrowing("storage-version-changed", path, f"objects were stored as {storage}, and are stored as {other} when they are written: `noxu migrate` rewrites them")  # fmt: skip


def _storage(spec: Object) -> str:
    return next((str(each.get("name")) for each in spec.get("versions") or () if each.get("storage")), "")


def _of_version(old: Object, new: Object, path: Path) -> Iterator[Narrowing]:
    if old.get("served") and not new.get("served"):
        yield Narrowing("version-removed", child(path, "served"), f"version {old.get('name')} is no longer served")
    yield from _of_subresources(
        old.get("subresources") or {}, new.get("subresources") or {}, child(path, "subresources")
    )
    for field in old.get("selectableFields") or ():
        if not any(each.get("jsonPath") == field.get("jsonPath") for each in new.get("selectableFields") or ()):
            at = child(path, "selectableFields")
            yield Narrowing("field-selector-removed", at, f"{field.get('jsonPath')} can no longer be selected by")
    before, now = ((each.get("schema") or {}).get("openAPIV3Schema") for each in (old, new))
    at = child(path, "schema.openAPIV3Schema")
    if isinstance(before, dict) and isinstance(now, dict):
        yield from schema_narrowings(before, now, at)
    elif isinstance(now, dict):
        yield Narrowing("narrower-type", at, "there was no schema, and there is one now")


def _of_subresources(old: Object, new: Object, path: Path) -> Iterator[Narrowing]:
    for name in ("status", "scale"):
        if old.get(name) is not None and new.get(name) is None:
            yield Narrowing("subresource-removed", path, f"the subresource {name} is gone")
    if old.get("status") is None and new.get("status") is not None:
        why = "there is a subresource status now: other writes no longer change the status, nor set it when they create an object"
        yield Narrowing("subresource-added", child(path, "status"), why)
    for name in _SCALE_PATHS:
        before, now = ((each.get("scale") or {}).get(name) for each in (old, new))
        if before and new.get("scale") is not None and before != now:
            said = f"and is {now} now" if now else "and there is none now"
            yield Narrowing("subresource-changed", child(path, "scale", name), f"the path was {before}, {said}")


def _of_conversion(old: Object, new: Object) -> Iterator[Narrowing]:
    before, now = old.get("strategy") or "None", new.get("strategy") or "None"
    if before != now:
        yield Narrowing(
            "conversion-changed", "spec.conversion.strategy", f"the conversion was {before}, and is {now} now"
        )
    reviews, others = ((each.get("webhook") or {}).get("conversionReviewVersions") or [] for each in (old, new))
    if before == now == "Webhook" and (gone := [each for each in reviews if each not in others]):
        at = "spec.conversion.webhook.conversionReviewVersions"
        yield Narrowing(
            "conversion-changed", at, f"{', '.join(map(compact_json, gone))} is no longer sent to the webhook"
        )
    targets = [_target(each) for each in (old, new)]
    if before == now == "Webhook" and not equal(*targets):
        yield Narrowing("conversion-changed", "spec.conversion.webhook.clientConfig", "the webhook is another one now")


def _target(conversion: Object) -> Object:
    """Where a webhook is, without the CA, which is renewed."""
    config = (conversion.get("webhook") or {}).get("clientConfig") or {}
    service = config.get("service")
    return {"url": config.get("url"), "service": {"port": 443, **service} if isinstance(service, dict) else None}
