"""The values of the variables of admission expressions (upstream's pkg/admission/plugin/cel, its evaluation activation)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from noxu.cel.kubernetes.admission import (
    AUTHORIZER,
    NAMESPACE,
    OBJECT,
    OLD_OBJECT,
    PARAMS,
    REQUEST,
    REQUEST_AUTHORIZER,
    VARIABLES,
)
from noxu.cel.library.authorization import Authorize, Authorizer, resource_check
from noxu.cel.values.values import LazyMap, Value, untyped
from noxu.values import Object


def activation(
    *,
    object_: Object | None,
    old_object: Object | None,
    request: Object,
    namespace: Object | None,
    params: Object | None,
    authorize: Authorize | None,
    resource: tuple[str, str, str, str, str] = ("", "", "", "", ""),
    variables: Mapping[str, Callable[[], Value]] | None = None,
) -> dict[str, Value]:
    """The variables of an expression, by name.

    Objects are JSON. `authorize` answers questions of the `authorizer`, which does not exist without it. `resource` is what
    `authorizer.requestResource` asks about: group, resource, subresource, namespace and name. `variables` compute those of
    the policy when they are first used; they may raise CelError.
    """
    known: dict[str, Value] = {
        OBJECT: untyped(object_),
        OLD_OBJECT: untyped(old_object),
        REQUEST: untyped(request),
        NAMESPACE: untyped(namespace),
        PARAMS: untyped(params),
    }
    if authorize is not None:
        known[AUTHORIZER] = Authorizer(authorize)
        known[REQUEST_AUTHORIZER] = resource_check(authorize, *resource)
    if variables is not None:
        known[VARIABLES] = LazyMap(variables)
    return known
