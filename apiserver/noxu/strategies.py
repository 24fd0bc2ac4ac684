"""Strategies for Hypothesis: objects that the CRDs of a project accept, or refuse.

    from hypothesis import given
    from noxu.strategies import valid

    @given(valid("widgets.example.com", crds="config/crd"))
    def test_a_widget_is_rendered(widget):
        render(widget)

The objects are those of `noxu generate`, with choices that Hypothesis makes and shrinks: towards fewer fields, shorter texts
and numbers near 0. Hypothesis is not a dependency: `pip install hypothesis`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from noxu.generation.broken import BrokenObject as BrokenObject
from noxu.generation.broken import broken_object
from noxu.generation.kinds import UnknownDefinition as UnknownDefinition
from noxu.generation.kinds import resource_of, valid_object
from noxu.generation.texts import Choose
from noxu.generation.valid import CannotGenerate as CannotGenerate
from noxu.registry.resource import Resource
from noxu.testing.sources import Source, documents, several
from noxu.values import Object

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["BrokenObject", "CannotGenerate", "UnknownDefinition", "invalid", "valid"]

T = TypeVar("T")
_PROBES = 3
"""Objects that are made at once, so that a kind without any is an error here, and not a test without examples."""


def valid(name: str, *, crds: Source | Iterable[Source]) -> SearchStrategy[Object]:
    """Objects of a kind that a server accepts, by the schema and the rules of its CRD.

    `name` is that of the CRD, with a version if it is not the stored one: `widgets.example.com/v1beta1`. `crds` are sources as
    of `Noxu.apply`: files, directories, texts or objects. The objects have a name, and no namespace; `status` only where it
    is no subresource. Raises UnknownDefinition; CannotGenerate for a schema that no object is found for, with the field and
    the reason; ImportError without Hypothesis.
    """
    return _strategy(name, crds, valid_object)


def invalid(name: str, *, crds: Source | Iterable[Source]) -> SearchStrategy[BrokenObject]:
    """Objects of a kind that a server refuses, because one value of a valid object is broken.

    Each is a `BrokenObject`: its `value`; the `field` that is broken, which is among the causes of the server's refusal; and
    `why`, the message about it. Arguments and errors are those of `valid`.
    """
    return _strategy(name, crds, broken_object)


def _strategy(name: str, crds: Source | Iterable[Source], make: Callable[[Resource, Choose], T]) -> SearchStrategy[T]:
    try:
        strategies = import_module("hypothesis.strategies")
    except ModuleNotFoundError:
        raise ImportError("noxu.strategies needs Hypothesis: pip install hypothesis") from None
    resource = resource_of(documents(*several(crds)), name)
    for seed in range(_PROBES):
        try:
            make(resource, Random(seed).randrange)  # noqa: S311 - no secret
            break
        except CannotGenerate:
            if seed == _PROBES - 1:
                raise
    below = lru_cache(None)(lambda n: strategies.integers(0, n - 1))

    def drawn(draw: Callable[[Any], int]) -> T:
        def choose(n: int) -> int:
            return draw(below(n)) if n > 1 else 0

        try:
            return make(resource, choose)
        except CannotGenerate:
            import_module("hypothesis").reject()
            raise

    objects: Callable[[], SearchStrategy[T]] = strategies.composite(drawn)
    return objects()
