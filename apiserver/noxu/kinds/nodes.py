"""core/v1: Node; node.k8s.io/v1: RuntimeClass; coordination.k8s.io/v1: Lease, with which controllers elect a leader.

The rules are those of k8s.io/kubernetes: ValidateNode and ValidateNodeUpdate in pkg/apis/core/validation,
pkg/apis/node/validation and pkg/apis/coordination/validation.
"""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import label_name, label_value, qualified_name
from noxu.kinds import addresses, checks
from noxu.kinds.checks import Errors
from noxu.kinds.kind import Context, Rules
from noxu.kinds.matching import repeats
from noxu.kinds.placement import tolerations
from noxu.kinds.resource_requirements import quantity_value, requirements
from noxu.values import Object

_POD_CIDRS: Final = 'node updates may not change podCIDR except from "" to valid'


def _default_node(value: Object) -> None:
    """podCIDR is the first of podCIDRs; if they differ, podCIDR counts (core/v1's conversion of NodeSpec)."""
    spec: Object = value.get("spec") or {}
    first, every = spec.get("podCIDR", ""), spec.get("podCIDRs") or []
    if first and (not every or every[0] != first):
        spec["podCIDRs"] = [first]
    elif every and not first:
        spec["podCIDR"] = every[0]


def _validate_node(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    spec: Object = new.get("spec") or {}
    errors = list(_taints(spec.get("taints") or [], "metadata.taints"))  # upstream names the wrong parent
    resources = list(_resources(new.get("status") or {}))
    if old is None:
        return errors + resources + list(_pod_cidrs(spec.get("podCIDRs") or []))
    return resources + list(_update(new, old)) + errors


def _taints(taints: list[Object], path: Path) -> Errors:
    seen = set()
    for n, taint in enumerate(taints):
        where = f"{path}[{n}]"
        name, value, effect = (taint.get(part, "") for part in ("key", "value", "effect"))
        yield from checks.qualified(name, f"{where}.key")
        wrong = label_value(value)
        if wrong:
            yield field.invalid(f"{where}.value", value, ";".join(wrong))
        yield from checks.required_choice(effect, "core/v1.TaintEffect", f"{where}.effect", declared=True)
        if (name, effect) in seen:
            shown = checks.struct_json("core/v1.Taint", taint)
            yield field.duplicate(where, shown)._replace(detail="taints must be unique by key and effect pair")
        seen.add((name, effect))


def _resources(status: Object) -> Errors:
    for kind in ("capacity", "allocatable"):
        for name, amount in sorted((status.get(kind) or {}).items()):
            yield from quantity_value(name, amount, f"status.{kind}.{name}")


def _pod_cidrs(cidrs: list[str]) -> Errors:
    path = "spec.podCIDRs"
    for n, text in enumerate(cidrs):
        yield from addresses.network(text, f"{path}[{n}]")
    if len(cidrs) > 1:
        if len(cidrs) > 2 or len({":" in text for text in cidrs}) == 1:
            yield field.invalid(path, cidrs, "may specify no more than one CIDR for each IP family")
        for n in sorted(repeats(cidrs)):
            yield field.duplicate(f"{path}[{n}]", cidrs[n])


def _update(new: Object, old: Object) -> Errors:
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    node_addresses: list[Object] = (new.get("status") or {}).get("addresses") or []
    for n in sorted(repeats(f"{address.get('type', '')}/{address.get('address', '')}" for address in node_addresses)):
        yield field.duplicate(f"status.addresses[{n}]", checks.struct_json("core/v1.NodeAddress", node_addresses[n]))
    stored_cidrs = before.get("podCIDRs") or []
    if stored_cidrs and stored_cidrs != (spec.get("podCIDRs") or []):
        yield field.forbidden("spec.podCIDRs", _POD_CIDRS)
    if before.get("providerID") and before["providerID"] != spec.get("providerID"):
        yield field.invalid("spec.providerID", None, "field cannot be modified once set")
    if spec.get("externalID", "") != before.get("externalID", ""):
        yield field.forbidden("spec.externalID", "may not be updated")


def _warn_node(new: Object, old: Object | None) -> list[str]:
    """Fields without effect, when they are set."""
    spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
    warnings = []
    if spec.get("configSource") is not None and before.get("configSource") is None:
        warnings.append("spec.configSource: the feature is no longer supported and will not be used")
    if spec.get("externalID") and not before.get("externalID"):
        warnings.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    return warnings


def _validate_runtime_class(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    handler = new.get("handler", "")
    if old is not None:
        return list(checks.immutable(handler, old.get("handler", ""), "handler"))
    return list(_runtime_class(new, handler))


def _runtime_class(new: Object, handler: str) -> Errors:
    if not handler:
        yield field.required("handler")
    else:
        yield from checks.named(handler, label_name, "handler")
    overhead, scheduling = new.get("overhead"), new.get("scheduling")
    if overhead is not None:
        yield from requirements({"limits": overhead.get("podFixed") or {}}, (), "overhead")
    if scheduling is not None:
        yield from checks.labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
        yield from tolerations(scheduling.get("tolerations") or [], "scheduling.tolerations")


RULES: Final = {"Node": Rules(_default_node, validate=_validate_node, warnings=_warn_node)}
NODE_RULES: Final = {"RuntimeClass": Rules(validate=_validate_runtime_class)}


# -- coordination -----------------------------------------------------------------------------------------------------


_STRATEGIES: Final = ["OldestEmulationVersion"]


def _validate(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    spec = new.get("spec", {})
    errors = []
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        errors.append(field.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        errors.append(field.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    strategy = spec.get("strategy")
    if strategy is not None:
        errors += _strategy_errors(strategy)
    if spec.get("preferredHolder") and not strategy:
        errors.append(field.forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))
    return errors


def _strategy_errors(strategy: str) -> list[FieldError]:
    path = "spec.strategy.strategy"  # upstream names the child twice
    if "/" in strategy:
        return [field.invalid(path, as_json(strategy), text) for text in qualified_name(strategy)]
    return [] if strategy in _STRATEGIES else [field.not_supported(path, as_json(strategy), _STRATEGIES)]


LEASE_RULES: Final = {"Lease": Rules(validate=_validate)}
