"""Measures objects that are made from schemas: their number, their verdicts by the whole pipeline, and the time for them.

    python -m benchmarks.generation [-n 20] DIRECTORY

DIRECTORY has CRDs, such as those of 197 real projects. For each, objects are made that it accepts, and objects that it
refuses; both are then written in memory, as `noxu validate` does it. Seconds are those of the processor, without that.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

from noxu.api.errors import ApiError
from noxu.commands.findings import WriteRules
from noxu.commands.in_memory import validate
from noxu.commands.results import Shard
from noxu.generation.broken import BrokenObject, broken_object
from noxu.generation.kinds import resource_of, valid_object
from noxu.generation.texts import Choose
from noxu.generation.valid import CannotGenerate
from noxu.manifests.documents import Document, is_crd, read_paths
from noxu.registry.resource import Resource
from noxu.values import Object

Make = Callable[[Resource, Choose], Object | BrokenObject]


def made(crds: Iterable[Document], number: int, make: Make) -> dict[str, list[Object | BrokenObject]]:
    """Objects by the names of their CRDs; one without any is printed with the reason."""
    found: dict[str, list[Object | BrokenObject]] = {}
    for crd in crds:
        try:
            resource = resource_of([crd], crd.name)
            found[crd.name] = [make(resource, Random(seed).randrange) for seed in range(number)]
        except CannotGenerate as error:
            print(f"  {crd.name}: {error}")
    return found


def wrong(crd: Document, objects: list[Object | BrokenObject]) -> list[str]:
    """What the pipeline says of objects beside what it should. Those with the same name are written into stores of their own."""
    rounds: list[dict[str, Document]] = []
    for n, each in enumerate(objects):
        value = each.value if isinstance(each, BrokenObject) else each
        name = value["metadata"]["name"]
        free = next((names for names in rounds if name not in names), None)
        if free is None:
            rounds.append(free := {})
        free[name] = Document(value, "generated", n)
    complaints = []
    for names in rounds:
        outcomes = asyncio.run(validate(Shard([crd, *names.values()]), WriteRules(strict=True)))
        if refused := next((outcome.error for document, outcome in outcomes if is_crd(document.value)), None):
            return [f"{crd.name}: servers refuse the CRD itself: {refused}"]
        complaints += [
            f"{crd.name}: {complaint}"
            for document, outcome in outcomes
            if not is_crd(document.value)
            if (complaint := complaint_about(objects[document.number], outcome.error))
        ]
    return complaints


def complaint_about(made: Object | BrokenObject, error: ApiError | None) -> str:
    """Why a verdict is not the expected one, "" if it is."""
    if not isinstance(made, BrokenObject):
        return str(error) if error else ""
    causes = error.status.get("details", {}).get("causes", []) if error else []
    return "" if made.field in [cause.get("field") for cause in causes] else f"{made.field} is not a cause: {error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=20, dest="number", metavar="N", help="objects of each kind")
    parser.add_argument("directory", type=Path)
    options = parser.parse_args()
    crds = [document for document in read_paths([options.directory]) if is_crd(document.value)]
    kinds: list[tuple[str, Make]] = [("valid", valid_object), ("invalid", broken_object)]
    for name, make in kinds:
        began = time.process_time()
        found = made(crds, options.number, make)
        seconds = time.process_time() - began
        complaints = [text for crd in crds if crd.name in found for text in wrong(crd, found[crd.name])]
        print(f"{name}: {options.number} objects of {len(found)} of {len(crds)} CRDs in {seconds:.1f} s")
        print(*(f"  {text}" for text in complaints), sep="\n", end="\n" if complaints else "")


if __name__ == "__main__":
    main()
