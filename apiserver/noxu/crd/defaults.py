"""The defaults of a CRD (apiextensions/v1/defaults.go). They are filled in whenever a CRD is decoded, also from storage."""

from __future__ import annotations

from typing import Final

from noxu.crd.types import NAMES, SERVICE, SPEC
from noxu.crd.versions import storage_version
from noxu.go.structs import arrange
from noxu.values import Object

SERVICE_PORT: Final = 443


def default(crd: Object) -> Object:
    """A decoded CRD with its defaults; the given one is not changed."""
    spec = crd["spec"]
    filled = {**spec, "names": _default_names(spec["names"])}
    if spec.get("conversion") is None:
        filled["conversion"] = {"strategy": "None"}
    elif _is_blank(spec["conversion"].get("webhook")):
        filled["conversion"] = {"strategy": spec["conversion"]["strategy"]}
    elif service := _service_without_port(spec["conversion"]):
        webhook = spec["conversion"]["webhook"]
        config = {**webhook["clientConfig"], "service": arrange(SERVICE, {**service, "port": SERVICE_PORT})}
        filled["conversion"] = {**spec["conversion"], "webhook": {**webhook, "clientConfig": config}}
    crd = {**crd, "spec": arrange(SPEC, filled)}
    if not crd["status"]["storedVersions"] and (stored := storage_version(crd)) is not None:
        crd["status"] = {**crd["status"], "storedVersions": [stored]}
    return crd


def _default_names(names: Object) -> Object:
    kind = names["kind"]
    singular = names.get("singular") or kind.lower()
    list_kind = names.get("listKind") or (f"{kind}List" if kind else "")
    return arrange(NAMES, {**names, "singular": singular, "listKind": list_kind})


def _is_blank(webhook: Object | None) -> bool:
    """Whether a webhook has nothing in its fields; then there is none, because the form that is stored has only these."""
    return webhook is not None and webhook.get("clientConfig") is None and not webhook["conversionReviewVersions"]


def _service_without_port(conversion: Object) -> Object | None:
    config = (conversion.get("webhook") or {}).get("clientConfig") or {}
    service: Object | None = config.get("service")
    return service if service is not None and service.get("port") is None else None
