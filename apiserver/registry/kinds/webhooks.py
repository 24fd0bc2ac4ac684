"""The rules of MutatingWebhookConfigurations and ValidatingWebhookConfigurations.

As upstream has them (pkg/apis/admissionregistration/{v1/defaults.go,validation}), with one extension of ours: a URL may
be plain `http` if its host is this machine, so that a test needs no certificate for the webhook beside it.

Rules that came later do not hold for an update of an object that broke them before.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from apiserver.api import field, gourl
from apiserver.api.field import FieldError, Path
from apiserver.api.names import dns1035_label, dns1123_subdomain
from apiserver.api.types import Json, Object
from apiserver.api.values import equal
from apiserver.crd.clientconfig import service_errors, url_errors
from apiserver.registry.kinds import Context
from apiserver.registry.kinds.matching import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    chosen,
    condition_errors,
    default_rules,
    repeats,
    reserved_name_errors,
    rule_errors,
)
from apiserver.registry.kinds.selectors import label_selector_errors

_SIDE_EFFECTS: Final = ["None", "NoneOnDryRun", "Some", "Unknown"]
_NO_SIDE_EFFECTS: Final = ["None", "NoneOnDryRun"]
_REVIEW_VERSIONS: Final = ["v1", "v1beta1"]
_SELECTORS: Final = ("namespaceSelector", "objectSelector")
_MIN_TIMEOUT, _MAX_TIMEOUT = 1, 30
_MIN_SEGMENTS: Final = 3


def default_webhooks(configuration: Object, *, mutating: bool) -> None:
    for hook in configuration.get("webhooks") or ():
        defaults: list[tuple[str, Json]] = [
            ("failurePolicy", "Fail"),
            ("matchPolicy", "Equivalent"),
            ("namespaceSelector", {}),
            ("objectSelector", {}),
            ("timeoutSeconds", 10),
        ]
        if mutating:
            defaults.append(("reinvocationPolicy", "Never"))
        for name, value in defaults:
            if hook.get(name) is None:
                hook[name] = value
        default_rules(hook.get("rules"))
        service = hook.get("clientConfig", {}).get("service")
        if service is not None and service.get("port") is None:
            service["port"] = 443


def validate_webhooks(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    hooks: list[Object] = new.get("webhooks") or []
    before: list[Object] = (old or {}).get("webhooks") or []
    lenient = _Lenient(hooks, before, updating=old is not None)
    errors: list[FieldError] = []
    again = repeats(hook.get("name", "") for hook in hooks)
    for n, hook in enumerate(hooks):
        path = field.index("webhooks", n)
        errors += _hook_errors(hook, path, lenient, context)
        versions = hook.get("admissionReviewVersions") or []
        where = field.child(path, "admissionReviewVersions")
        errors += _version_errors(versions, where, any_version=lenient.any_version)
        if n in again and hook.get("name") and not lenient.repeated_names:
            errors.append(field.duplicate(field.child(path, "name"), hook["name"]))
    return errors + reserved_name_errors(new, old)


class _Lenient:
    """What the stored configuration got away with."""

    def __init__(self, hooks: list[Object], before: list[Object], *, updating: bool) -> None:
        names = [hook.get("name", "") for hook in before]
        self.same_conditions = (
            updating
            and len(hooks) == len(before)
            and all(equal(_conditions(a), _conditions(b)) for a, b in zip(hooks, before, strict=True))
        )
        self.side_effects = any(hook.get("sideEffects") not in _NO_SIDE_EFFECTS for hook in before)
        self.any_version = any(
            hook.get("admissionReviewVersions") and not set(_REVIEW_VERSIONS) & set(hook["admissionReviewVersions"])
            for hook in before
        )
        self.repeated_names = len(set(names)) != len(names)
        self.any_label_value = any(
            label_selector_errors(hook[name], "") for hook in before for name in _SELECTORS if hook.get(name)
        )
        self.expressions = {one.get("expression", "") for hook in before for one in _conditions(hook)}


def _conditions(hook: Object) -> list[Object]:
    return hook.get("matchConditions") or []


def _hook_errors(hook: Object, path: Path, lenient: _Lenient, context: Context) -> list[FieldError]:
    errors = _name_errors(hook.get("name", ""), field.child(path, "name"))
    for n, rule in enumerate(hook.get("rules") or ()):
        errors += rule_errors(rule, field.index(field.child(path, "rules"), n))
    errors += chosen(hook, path, "failurePolicy", FAILURE_POLICIES)
    errors += chosen(hook, path, "matchPolicy", MATCH_POLICIES)
    errors += _side_effect_errors(hook, path, _SIDE_EFFECTS if lenient.side_effects else _NO_SIDE_EFFECTS)
    timeout = hook.get("timeoutSeconds")
    if timeout is not None and not _MIN_TIMEOUT <= timeout <= _MAX_TIMEOUT:
        rule = "the timeout value must be between 1 and 30 seconds"
        errors.append(field.invalid(field.child(path, "timeoutSeconds"), timeout, rule))
    for name in _SELECTORS:
        selector = hook.get(name) or {}
        errors += label_selector_errors(selector, field.child(path, name), any_value=lenient.any_label_value)
    errors += chosen(hook, path, "reinvocationPolicy", REINVOCATION_POLICIES)
    errors += _client_errors(hook.get("clientConfig", {}), field.child(path, "clientConfig"))
    if not lenient.same_conditions:
        where = field.child(path, "matchConditions")
        before = lenient.expressions
        errors += condition_errors(_conditions(hook), where, context.check, params=False, before=before)
    return errors


def _name_errors(name: str, path: Path) -> list[FieldError]:
    """util/validation's IsFullyQualifiedName."""
    if not name:
        return [field.required(path)]
    if texts := dns1123_subdomain(name):
        return [field.invalid(path, name, ", ".join(texts))]
    if name.count(".") + 1 < _MIN_SEGMENTS:
        return [field.invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _side_effect_errors(hook: Object, path: Path, allowed: list[str]) -> list[FieldError]:
    if hook.get("sideEffects") is None:
        return [field.required(field.child(path, "sideEffects"), f"must specify one of {', '.join(allowed)}")]
    return chosen(hook, path, "sideEffects", allowed)


def _client_errors(config: Object, path: Path) -> list[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [field.required(path, "exactly one of url or service is required")]
    if url is not None:
        return list(url_errors(_with_https(url), field.child(path, "url")))
    # upstream swaps the two: a missing name is told as a missing namespace and the other way round
    swapped = {**(service or {}), "name": (service or {})["namespace"], "namespace": (service or {})["name"]}
    return list(service_errors(swapped, field.child(path, "service")))


def _with_https(url: str) -> str:
    """A plain URL to this machine as if it were an encrypted one: our extension. Others are left as they are."""
    try:
        parsed = gourl.parse(url)
    except ValueError:
        return url
    return f"https{url[len('http') :]}" if parsed.scheme == "http" and is_loopback(parsed.host) else url


def is_loopback(host: str) -> bool:
    """Is `host` or `host:port` this machine?"""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _version_errors(versions: list[str], path: Path, *, any_version: bool) -> list[FieldError]:
    known = ", ".join(_REVIEW_VERSIONS)
    if not versions:
        return [field.required(path, f"must specify one of {known}")]
    errors = []
    again = repeats(versions)
    for n, version in enumerate(versions):
        where = field.index(path, n)
        if n in again:
            errors.append(field.invalid(where, version, "duplicate version"))
        else:
            errors += [field.invalid(where, version, text) for text in dns1035_label(version)]
    if not any_version and not set(_REVIEW_VERSIONS) & set(versions):
        errors.append(field.invalid(path, versions, f"must include at least one of {known}"))
    return errors
