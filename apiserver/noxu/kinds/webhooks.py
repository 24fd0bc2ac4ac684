"""The rules of MutatingWebhookConfigurations and ValidatingWebhookConfigurations.

As upstream's (pkg/apis/admissionregistration/validation), with one extension: a URL may be plain `http`
if its host is loopback, so that a test needs no certificate for its webhook.

Rules that were introduced later do not apply to an update of an object that violates them already.
"""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path
from noxu.api.names import dns1035_label, dns1123_subdomain
from noxu.crd.clientconfig import service_errors, url_errors
from noxu.kinds.kind import Context
from noxu.kinds.matching import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    chosen,
    condition_errors,
    repeats,
    reserved_name_errors,
    rule_errors,
)
from noxu.kinds.selectors import label_selector_errors
from noxu.values import Object, equal

_SIDE_EFFECTS: Final = ["None", "NoneOnDryRun", "Some", "Unknown"]
_NO_SIDE_EFFECTS: Final = ["None", "NoneOnDryRun"]
_REVIEW_VERSIONS: Final = ["v1", "v1beta1"]
_SELECTORS: Final = ("namespaceSelector", "objectSelector")
_MIN_TIMEOUT, _MAX_TIMEOUT = 1, 30
_MIN_SEGMENTS: Final = 3


def validate_webhooks(new: Object, old: Object | None, context: Context) -> list[FieldError]:
    hooks: list[Object] = new.get("webhooks") or []
    before: list[Object] = (old or {}).get("webhooks") or []
    exempt = _Exemptions(hooks, before, updating=old is not None)
    errors: list[FieldError] = []
    again = repeats(hook.get("name", "") for hook in hooks)
    for n, hook in enumerate(hooks):
        path = field.index("webhooks", n)
        errors += _hook_errors(hook, path, exempt, context)
        versions = hook.get("admissionReviewVersions") or []
        where = field.child(path, "admissionReviewVersions")
        errors += _version_errors(versions, where, any_version=exempt.any_version)
        if n in again and hook.get("name") and not exempt.repeated_names:
            errors.append(field.duplicate(field.child(path, "name"), hook["name"]))
    return errors + reserved_name_errors(new, old)


class _Exemptions:
    """The violations of the stored configuration, which an update may keep."""

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
        self.expressions = {condition.get("expression", "") for hook in before for condition in _conditions(hook)}


def _conditions(hook: Object) -> list[Object]:
    return hook.get("matchConditions") or []


def _hook_errors(hook: Object, path: Path, exempt: _Exemptions, context: Context) -> list[FieldError]:
    errors = _name_errors(hook.get("name", ""), field.child(path, "name"))
    for n, rule in enumerate(hook.get("rules") or ()):
        errors += rule_errors(rule, field.index(field.child(path, "rules"), n))
    errors += chosen(hook, path, "failurePolicy", FAILURE_POLICIES)
    errors += chosen(hook, path, "matchPolicy", MATCH_POLICIES)
    errors += _side_effect_errors(hook, path, _SIDE_EFFECTS if exempt.side_effects else _NO_SIDE_EFFECTS)
    timeout = hook.get("timeoutSeconds")
    if timeout is not None and not _MIN_TIMEOUT <= timeout <= _MAX_TIMEOUT:
        rule = "the timeout value must be between 1 and 30 seconds"
        errors.append(field.invalid(field.child(path, "timeoutSeconds"), timeout, rule))
    for name in _SELECTORS:
        selector = hook.get(name) or {}
        errors += label_selector_errors(selector, field.child(path, name), any_value=exempt.any_label_value)
    errors += chosen(hook, path, "reinvocationPolicy", REINVOCATION_POLICIES)
    errors += _client_errors(hook.get("clientConfig", {}), field.child(path, "clientConfig"))
    if not exempt.same_conditions:
        where = field.child(path, "matchConditions")
        before = exempt.expressions
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
        return list(url_errors(url, field.child(path, "url")))
    # upstream swaps the two: it reports a missing name as a missing namespace, and vice versa
    swapped = {**(service or {}), "name": (service or {})["namespace"], "namespace": (service or {})["name"]}
    return list(service_errors(swapped, field.child(path, "service")))


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
