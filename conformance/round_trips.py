"""Converts generated objects of other projects' CRDs to each other version and back, and prints what becomes of them.

    python -m conformance.round_trips [-n 20] [--list] [TEXT…]

The CRDs are those of `conformance.corpus` that have several versions and the strategy None, by which only the apiVersion changes.
So a round trip loses exactly what the other version's schema prunes, and gains no default but that of its own version: `unexplained`
are objects of which something else becomes. --list prints the fields that are lost. TEXT selects CRDs whose names contain it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

from conformance import corpus
from noxu.generation.kinds import as_shown, versions_of
from noxu.generation.valid import CannotGenerate
from noxu.manifests.documents import Document
from noxu.registry.resource import Resource
from noxu.upgrades.round_trips import RoundTrip, generated, round_trip
from noxu.values import Object, copy, equal


class PairOfVersions(NamedTuple):
    """What became of objects on one way. `unexplained` are those of which something else became than schemas say."""

    name: str
    way: str
    trips: Sequence[RoundTrip]
    unexplained: Sequence[Object]

    @property
    def changed(self) -> list[RoundTrip]:
        return [trip for trip in self.trips if not trip.holds]


def pairs(names: Sequence[str], number: int) -> Iterator[PairOfVersions]:
    for definition in corpus.definitions():
        if definition.has_conversion_webhook or not any(name in definition.name for name in names or ("",)):
            continue
        versions = versions_of(Document(definition.value, str(definition.file)))
        for home, other in permutations(versions.all, 2):
            try:
                values = list(generated(home, number))
            except CannotGenerate as error:
                print(f"{definition.name} {home.version}: {error}", file=sys.stderr)
                continue
            trips = asyncio.run(_trips(values, home, other))
            unexplained = [
                trip.value
                for trip in trips
                if trip.error or not equal(_changed(trip), _by_schemas(trip.value, home, other))
            ]
            yield PairOfVersions(
                definition.name, f"{home.version} → {other.version} → {home.version}", trips, unexplained
            )


async def _trips(values: Sequence[Object], home: Resource, other: Resource) -> list[RoundTrip]:
    return [await round_trip(value, home, other) for value in values]


def _changed(trip: RoundTrip) -> list[str]:
    return sorted(path for path, _, _ in trip.changed)


def _by_schemas(value: Object, home: Resource, other: Resource) -> list[str]:
    """The fields that the schemas of both versions change, without a converter."""
    there: Object = copy({**value, "apiVersion": other.api_version})
    other.codec.prune(other, there)  # a server fills in defaults at the stored version, before it converts
    back = as_shown({**there, "apiVersion": home.api_version}, home)
    return sorted(_differing(value, back, ""))


def _differing(before: object, after: object, path: str) -> Iterator[str]:
    """The paths at which two values differ: the outermost one where a field is missing, or a list has another length."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in {**before, **after}:
            below = f"{path}.{name}" if path else name
            if name in before and name in after:
                yield from _differing(before[name], after[name], below)
            else:
                yield below
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for n, (one, two) in enumerate(zip(before, after, strict=True)):
            yield from _differing(one, two, f"{path}[{n}]")
    elif not equal(before, after):
        yield path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="TEXT")
    parser.add_argument("-n", type=int, default=20, dest="number", metavar="N", help="objects of each version")
    parser.add_argument("--list", action="store_true", help="print the fields that are lost")
    options = parser.parse_args()
    ways = objects = changed = 0
    unexplained: list[str] = []
    definitions = set()
    for pair in pairs(options.names, options.number):
        definitions.add(pair.name)
        ways, objects, changed = ways + 1, objects + len(pair.trips), changed + len(pair.changed)
        unexplained += [f"{pair.name}: {pair.way}: {value}" for value in pair.unexplained]
        if options.list and pair.changed:
            print(f"{pair.name}: {pair.way}: {', '.join(dict.fromkeys(trip.why for trip in pair.changed))}")
    print(f"{len(definitions)} CRDs with several versions, {ways} ways there and back, {objects} objects")
    print(f"{changed} change, because the other version's schema has not all of their fields")
    print(f"{len(unexplained)} change otherwise")
    print(*unexplained, sep="\n", end="\n" if unexplained else "")
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
