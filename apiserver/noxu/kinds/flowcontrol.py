"""flowcontrol.apiserver.k8s.io/v1: FlowSchema, PriorityLevelConfiguration.

The rules are those of k8s.io/kubernetes pkg/apis/flowcontrol/validation. They do not queue requests.
"""

from __future__ import annotations

import math
from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import label_name, subdomain_name
from noxu.kinds import checks
from noxu.kinds.checks import Errors
from noxu.kinds.kind import Context, Rules
from noxu.values import Object

_EXEMPT: Final = "exempt"
_MAX_PRECEDENCE: Final = 10_000
_METHODS: Final = ["ByNamespace", "ByUser"]
_VERBS: Final = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"]
_SUBJECTS: Final = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_MAX_QUEUES: Final = 10_000_000
_MAX_HASH_BITS: Final = 60
_NAMESPACES: Final = "each member of this list must be '*' or a DNS-1123 label; "


def _conditions(new: Object) -> Errors:
    seen = set()
    for n, condition in enumerate((new.get("status") or {}).get("conditions") or ()):
        path, kind = f"status.conditions[{n}].type", condition.get("type", "")
        if kind in seen:
            yield field.duplicate(path, as_json(kind))
        seen.add(kind)
        if not kind:
            yield field.required(path, "must not be empty")


# -- FlowSchema -------------------------------------------------------------------------------------------------------


def _validate_schema(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    spec = [] if context.subresource else list(_schema(new["metadata"].get("name", ""), new.get("spec") or {}))
    return spec + list(_conditions(new))


def _schema(name: str, spec: Object) -> Errors:
    path, precedence = "spec.matchingPrecedence", spec.get("matchingPrecedence", 0)
    if precedence <= 0:
        yield field.invalid(path, precedence, "must be a positive value")
    if precedence > _MAX_PRECEDENCE:
        yield field.invalid(path, precedence, f"must not be greater than {_MAX_PRECEDENCE}")
    if precedence == 1 and name != _EXEMPT:
        yield field.invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type", "") not in _METHODS:
        shown = checks.struct_json("flowcontrol/v1.FlowDistinguisherMethod", method)
        yield field.not_supported("spec.distinguisherMethod.type", shown, _METHODS)
    level = (spec.get("priorityLevelConfiguration") or {}).get("name", "")
    if level:
        yield from checks.named(level, subdomain_name, "spec.priorityLevelConfiguration.name")
    else:
        yield field.required("spec.priorityLevelConfiguration.name", "must reference a priority level")
    yield from checks.each(spec.get("rules"), "spec.rules", _rule)


def _rule(rule: Object, path: Path) -> Errors:
    subjects, resources, urls = (rule.get(name) or [] for name in ("subjects", "resourceRules", "nonResourceRules"))
    yield from checks.each(subjects, f"{path}.subjects", _subject)
    if not subjects:
        yield field.required(f"{path}.subjects", "subjects must contain at least one value")
    if not resources and not urls:
        yield field.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    yield from checks.each(resources, f"{path}.resourceRules", _resource_rule)
    yield from checks.each(urls, f"{path}.nonResourceRules", _url_rule)


def _subject(subject: Object, path: Path) -> Errors:
    kind = subject.get("kind", "")
    if kind not in _SUBJECTS:
        yield field.not_supported(f"{path}.kind", as_json(kind), sorted(_SUBJECTS))
        return
    name = _SUBJECTS[kind]
    named = subject.get(name)
    if named is None:
        yield field.required(f"{path}.{name}", f"{name} is required when subject kind is '{kind}'")
    else:
        yield from _named_subject(named, kind, f"{path}.{name}")
    for other_kind in ("ServiceAccount", "User", "Group"):
        key = _SUBJECTS[other_kind]
        if other_kind != kind and subject.get(key) is not None:
            yield field.forbidden(f"{path}.{key}", f"{key} is forbidden when subject kind is not '{other_kind}'")


def _named_subject(subject: Object, kind: str, path: Path) -> Errors:
    name = subject.get("name", "")
    if not name:
        yield field.required(f"{path}.name")
    if kind != "ServiceAccount":
        return
    if name and name != "*":
        yield from checks.named(name, subdomain_name, f"{path}.name")
    if subject.get("namespace"):
        yield from checks.named(subject["namespace"], label_name, f"{path}.namespace")
    else:
        yield field.required(f"{path}.namespace", "must specify namespace for service account")


def _verbs(rule: Object, path: Path) -> Errors:
    verbs: list[str] = rule.get("verbs") or []
    if not verbs:
        yield field.required(f"{path}.verbs", "verbs must contain at least one value")
    elif "*" in verbs:
        yield from _alone(verbs, f"{path}.verbs", "verbs")
    elif not set(verbs) <= set(_VERBS):
        yield field.not_supported(f"{path}.verbs", verbs, _VERBS)


def _alone(values: list[str], path: Path, plural: str) -> Errors:
    if "*" in values and len(values) > 1:
        yield field.invalid(path, values, f"if '*' is present, must not specify other {plural}")


def _resource_rule(rule: Object, path: Path) -> Errors:
    yield from _verbs(rule, path)
    for name, singular, plural in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        values: list[str] = rule.get(name) or []
        if not values:
            yield field.required(f"{path}.{name}", f"resource rules must supply at least one {singular}")
        yield from _alone(values, f"{path}.{name}", plural)
    namespaces: list[str] = rule.get("namespaces") or []
    where = f"{path}.namespaces"
    if not namespaces and not rule.get("clusterScope"):
        text = "resource rules that are not cluster scoped must supply at least one namespace"
        yield field.required(where, text)
    elif "*" in namespaces:
        yield from _alone(namespaces, where, "namespaces")
    else:
        for n, name in enumerate(namespaces):
            yield from (field.invalid(f"{where}[{n}]", name, _NAMESPACES + text) for text in label_name(name))


def _url_rule(rule: Object, path: Path) -> Errors:
    yield from _verbs(rule, path)
    urls: list[str] = rule.get("nonResourceURLs") or []
    where = f"{path}.nonResourceURLs"
    if not urls:
        yield field.required(where, "nonResourceURLs must contain at least one value")
    elif "*" in urls:
        yield from _alone(urls, where, "non-resource URLs")
    else:
        for n, url in enumerate(urls):
            why = _url_error(url)
            if why:
                yield field.invalid(f"{where}[{n}]", url, why)


def _url_error(url: str) -> str:
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    stars = url.count("*")
    return "wildcard can only do suffix matching" if stars > 1 or (stars and not url.endswith("/*")) else ""


# -- PriorityLevelConfiguration ---------------------------------------------------------------------------------------


def _validate_level(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    spec = [] if context.subresource else list(_level(new["metadata"].get("name", ""), new.get("spec") or {}))
    return spec + list(_conditions(new))


def _level(name: str, spec: Object) -> Errors:
    kind, limited, exempt = spec.get("type", ""), spec.get("limited"), spec.get("exempt")
    if not kind:
        yield field.required("spec.type")
        return
    if (name == _EXEMPT) != (kind == "Exempt"):
        rule = "type must be 'Exempt' if and only if name is 'exempt'"
        yield field.invalid("spec.type", as_json(kind), rule)
    if kind == "Exempt":
        if limited is not None:
            yield field.forbidden("spec.limited", "must be nil if the type is not Limited")
        if exempt is not None:
            yield from _shares(exempt, "spec.exempt")
    elif kind == "Limited":
        if limited is None:
            yield field.required("spec.limited", "must not be empty when type is Limited")
        else:
            if exempt is not None:
                yield field.forbidden("spec.exempt", "must be nil if the type is Limited")
            yield from _limited(limited, "spec.limited")
    else:
        yield field.not_supported("spec.type", as_json(kind), ["Exempt", "Limited"])


def _shares(level: Object, path: Path) -> Errors:
    shares, lendable = level.get("nominalConcurrencyShares") or 0, level.get("lendablePercent")
    if shares < 0:
        yield field.invalid(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer")
    if lendable is not None and not 0 <= lendable <= 100:
        yield field.invalid(f"{path}.lendablePercent", lendable, "must be between 0 and 100, inclusive")


def _limited(level: Object, path: Path) -> Errors:
    yield from _shares(level, path)
    borrowing = level.get("borrowingLimitPercent")
    if borrowing is not None and borrowing < 0:
        yield field.invalid(f"{path}.borrowingLimitPercent", borrowing, "if specified, must be a non-negative integer")
    response: Object = level.get("limitResponse") or {}
    path, kind, queuing = f"{path}.limitResponse", response.get("type", ""), response.get("queuing")
    if not kind:
        yield field.required(f"{path}.type")
    elif kind == "Reject":
        if queuing is not None:
            yield field.forbidden(f"{path}.queuing", "must be nil if limited.limitResponse.type is not Limited")
    elif kind != "Queue":
        yield field.not_supported(f"{path}.type", as_json(kind), ["Queue", "Reject"])
    elif queuing is None:
        yield field.required(f"{path}.queuing", "must not be empty if limited.limitResponse.type is Limited")
    else:
        yield from _queuing(queuing, f"{path}.queuing")


def _queuing(queuing: Object, path: Path) -> Errors:
    limit, queues, hand = (queuing.get(name, 0) for name in ("queueLengthLimit", "queues", "handSize"))
    if limit <= 0:
        yield field.invalid(f"{path}.queueLengthLimit", limit, "must be positive")
    if queues <= 0:
        yield field.invalid(f"{path}.queues", queues, "must be positive")
    elif queues > _MAX_QUEUES:
        yield field.invalid(f"{path}.queues", queues, f"must not be greater than {_MAX_QUEUES}")
    if hand <= 0:
        yield field.invalid(f"{path}.handSize", hand, "must be positive")
    elif hand > queues:
        yield field.invalid(f"{path}.handSize", hand, f"should not be greater than queues ({queues})")
    elif math.ceil(math.log2(queues) * hand) > _MAX_HASH_BITS:
        rule = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {_MAX_HASH_BITS}"
        yield field.invalid(f"{path}.handSize", hand, rule)


RULES: Final = {
    "FlowSchema": Rules(validate=_validate_schema),
    "PriorityLevelConfiguration": Rules(validate=_validate_level),
}
