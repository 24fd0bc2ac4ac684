"""The strategy of built-in kinds: a write and its validation by the rules in their `Kind` (upstream's strategies)."""

from __future__ import annotations

from noxu.api import meta
from noxu.kinds.expressions import Checker
from noxu.kinds.kind import Context, Kind
from noxu.kinds.kind import prepare as prepare_object
from noxu.kinds.matching import Unevaluable
from noxu.registry.draft import Draft
from noxu.values import Object


def prepare(draft: Draft) -> None:
    """Reset fields that cannot be set through this endpoint, and set those that the server determines."""
    prepare_object(_table(draft), draft.new, draft.old, _context(draft))  # in place


def validate(draft: Draft) -> None:
    """All errors of an object, in upstream's order."""
    new, old, table, outcome = draft.new, draft.old, _table(draft), draft.outcome
    if table.stored:
        outcome.errors += meta.validate_object_meta(
            new["metadata"], namespaced=table.namespaced, name_rule=table.rule_of_name(new)
        )
    if old is not None:
        outcome.errors += meta.validate_object_meta_update(new["metadata"], old["metadata"])
    strict = draft.request.options.field_validation == "Strict"
    for error in table.validate(new, old, _context(draft)):
        if strict or not isinstance(error, Unevaluable):
            outcome.errors.append(error)
        else:
            outcome.warnings.append(" ".join(str(error).split()))
    if not outcome.errors:
        outcome.warnings += table.warnings(new, old)


def _context(draft: Draft) -> Context:
    user = draft.request.user
    attributes = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    extra = {name: list(values) for name, values in user.extra}
    return Context(draft.request.subresource, Checker(), draft.now, attributes | ({"extra": extra} if extra else {}))


def _table(draft: Draft) -> Kind:
    table = draft.resource.table
    assert table is not None, draft.resource.kind
    return table


# -- namespaces -------------------------------------------------------------------------------------------------------


def held(namespace: Object) -> bool:
    """Whether a namespace has finalizers in its spec."""
    return bool((namespace.get("spec") or {}).get("finalizers"))


def begin_delete_namespace(namespace: Object, now: str, finalizers: list[str]) -> bool:
    """Mark a namespace as being deleted; whether it remains, because this is its first deletion, or finalizers hold it.

    As upstream (registry/core/namespace/storage), the first deletion never removes a namespace, and further ones change
    nothing while it has finalizers in its spec.
    """
    metadata = namespace["metadata"]
    if metadata.get("deletionTimestamp"):
        return held(namespace)
    metadata["deletionTimestamp"] = now  # in place: `finalize` passes its own copy
    namespace.setdefault("status", {})["phase"] = "Terminating"
    if set(finalizers) != set(metadata.get("finalizers") or ()):
        metadata["finalizers"] = finalizers
    return True
