"""`noxu generate`: print objects that a CRD accepts, or refuses.

The same seed prints the same objects. Each has been validated as a server would; an invalid one is preceded by the field
that is broken and by the server's message about it.
"""

from __future__ import annotations

import argparse
import sys
from random import Random

from noxu.api import codec
from noxu.commands.findings import FOUND, UNREADABLE
from noxu.generation.broken import BrokenObject, broken_object
from noxu.generation.kinds import UnknownDefinition, errors_of, resource_of, valid_object
from noxu.generation.valid import CannotGenerate
from noxu.manifests.documents import LoadError, checked, read_paths
from noxu.registry.resource import Resource
from noxu.values import Object


def run(options: argparse.Namespace) -> int:
    """Exit status 0: printed; 1: no object is found; 2: an input cannot be read, or does not define the kind."""
    try:
        documents = list(checked(read_paths(options.files, command=f"{options.command} {options.name} -f")))
        resource = resource_of(documents, options.name)
        names = set[str]()
        for n in range(options.number):
            made = _made(resource, options, n)
            _rename(resource, made, names, n)
            print(_as_yaml(made, first=n == 0), end="")
    except (LoadError, UnknownDefinition) as error:
        print(f"noxu: {error}", file=sys.stderr)
        return UNREADABLE
    except CannotGenerate as error:
        print(f"noxu: {options.name}: {error}", file=sys.stderr)
        return FOUND
    return 0


def _made(resource: Resource, options: argparse.Namespace, n: int) -> Object | BrokenObject:
    """The n-th object. Raises CannotGenerate if several attempts find none."""
    make = broken_object if options.invalid else valid_object
    attempts = 3
    for attempt in range(attempts):
        choose = Random(f"{options.seed}/{n}/{attempt}").randrange  # noqa: S311 - no secret
        try:
            return make(resource, choose)
        except CannotGenerate:
            if attempt == attempts - 1:
                raise
    raise AssertionError


def _rename(resource: Resource, made: Object | BrokenObject, names: set[str], n: int) -> None:
    """Give an object a name that none before it has, in place, if its schema allows; a broken object stays broken."""
    value = made.value if isinstance(made, BrokenObject) else made
    metadata = value["metadata"]
    former = metadata["name"]
    if former in names:
        metadata["name"] = f"{former}-{n}"
        if any(error.field.startswith("metadata") or not error.field for error in errors_of(value, resource)):
            metadata["name"] = former
    names.add(metadata["name"])


def _as_yaml(made: Object | BrokenObject, *, first: bool) -> str:
    separator = "" if first else "---\n"
    if not isinstance(made, BrokenObject):
        return separator + codec.to_yaml(made).decode()
    title = f"{made.field}: {made.why}".replace("\n", " ")
    return f"{separator}# {title}\n{codec.to_yaml(made.value).decode()}"
