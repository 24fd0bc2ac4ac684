"""Further versions of built-in kinds, for clients that are older than the server: policy/v1beta1, rbac.authorization.k8s.io/v1beta1.

A document of `--kinds` may describe a kind that is built in, in a version that is not. Its objects are those of the built-in kind:
they are stored in its collection, where controllers find them, and have its fields, defaults and rules in every version. Only the
apiVersion differs (upstream's versions of one storage, without conversion functions). So a version fits whose fields are those of
the built-in one; fields that it alone has are dropped as unknown ones are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from noxu.kinds.kind import Kind
from noxu.registry.builtin import BuiltInCodec, resource_of
from noxu.registry.resource import Resource, Versions
from noxu.values import Object


class WithFurther(NamedTuple):
    """`built_in` with further versions; `others` are the definitions of kinds that are not built in."""

    built_in: Sequence[Versions]
    others: Sequence[Object]


def with_further(built_in: Sequence[Versions], definitions: Iterable[Object], *, has_foreign: bool) -> WithFurther:
    """Raises ValueError for a version of a kind that has several already. `has_foreign`: as for `built_in_versions`."""
    by_name = {f"{versions.storage.plural}.{versions.storage.group}": versions for versions in built_in}
    others, changed = [], dict(by_name)
    for definition in definitions:
        name = definition["metadata"]["name"]
        if name not in by_name:
            others.append(definition)
        elif wanted := _not_there(by_name[name], definition):
            changed[name] = _both(by_name[name], wanted, has_foreign=has_foreign)
    return WithFurther(list(changed.values()), others)


def _not_there(versions: Versions, definition: Object) -> list[str]:
    there = {resource.version for resource in versions.all}
    return [version["name"] for version in definition["spec"]["versions"] if version["name"] not in there]


def _both(versions: Versions, wanted: Sequence[str], *, has_foreign: bool) -> Versions:
    """The built-in version, and a further one."""
    stored = versions.storage.table
    if stored is None or len(wanted) + len(list(versions.all)) > 2:
        raise ValueError(
            f"{versions.storage.kind} is built in as {versions.storage.api_version}: it can have one further version"
        )
    further = replace(stored, version=wanted[0])
    both = [_view(stored, further, has_foreign=has_foreign), _view(further, stored, has_foreign=has_foreign)]
    return Versions(both, both[0])


def _view(kind: Kind, other: Kind, *, has_foreign: bool) -> Resource:
    return resource_of(kind, BuiltInCodec(kind, other, _renamed(kind.api_version), has_foreign=has_foreign))


def _renamed(api_version: str) -> Callable[[Object], Object]:
    return lambda value: {**value, "apiVersion": api_version}
