"""`noxu convert`: convert custom resources in files to another version, or check that conversions lose nothing.

The strategy None needs nothing. A webhook is called if it is on this machine; a function in Python takes the place of any other.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import permutations
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.api.names import is_loopback
from noxu.commands.findings import FOUND, UNREADABLE
from noxu.crd import types
from noxu.generation.kinds import versions_of
from noxu.generation.valid import CannotGenerate
from noxu.go.text import compact_json
from noxu.http.webhooks import WebhookClient
from noxu.manifests import loading
from noxu.manifests.documents import Document, LoadError, checked, is_crd, read_paths
from noxu.registry.conversion.converters import Conversions
from noxu.registry.resource import Resource, Versions
from noxu.testing.functions import converter
from noxu.upgrades.round_trips import RoundTrip, converted, generated, round_trip
from noxu.values import Object
from noxu.webhook.client import Service

_SHOWN: Final = 2
"""Objects to print for each pair of versions."""


class UnusableConversion(Exception):
    """An object or a definition cannot be converted; the message says why and what to do."""


def run(options: argparse.Namespace) -> int:
    """Exit status 0: converted, nothing is lost; 1: a conversion fails, or loses something; 2: an input cannot be read."""
    try:
        documents = loading.ready(checked(read_paths(options.files, command=f"{options.command} -f")))
        functions = {name: _function(place) for name, place in options.functions}
        return asyncio.run(_run(options, documents, functions))
    except (LoadError, UnusableConversion) as error:
        print(f"noxu: {error}", file=sys.stderr)
        return UNREADABLE
    except CannotGenerate as error:
        print(f"noxu: no objects can be generated: {error}", file=sys.stderr)
        return UNREADABLE


def _function(place: str) -> object:
    """The function `module:name`, of a module in the working directory, or any other. Raises UnusableConversion."""
    module, _, name = place.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UnusableConversion(f"--function {place}: {error}") from None
    finally:
        sys.path.pop(0)


async def _run(options: argparse.Namespace, documents: Sequence[Document], functions: Mapping[str, object]) -> int:
    services = {Service(*name): address for name, address in options.webhook_service}
    async with _definitions(documents, functions, services) as definitions:
        objects = [document for document in documents if not is_crd(document.value)]
        if options.round_trips is not None:
            return await _check(definitions, objects, options)
        if not objects:
            raise UnusableConversion(f"{', '.join(map(str, options.files))}: there is no object to convert")
        return await _convert(definitions, objects, options.to)


@contextlib.asynccontextmanager
async def _definitions(
    documents: Iterable[Document], functions: Mapping[str, object], services: Mapping[Service, str]
) -> AsyncIterator[dict[str, Versions]]:
    """The versions of each CRD, with their converter. Raises UnusableConversion, CannotGenerate."""
    client = WebhookClient(services)
    conversions, definitions = Conversions(client), dict[str, Versions]()
    for document in documents:
        if is_crd(document.value):
            crd = types.default(types.decode(document.value).value)
            if document.name in functions:
                conversions.in_process[document.name] = converter(functions[document.name])  # type: ignore[arg-type]
            elif why := _unreachable(crd["spec"].get("conversion") or {}, services):
                raise UnusableConversion(f"{document.place()}: {document.name}: {why}; or give --function")
            definitions[document.name] = versions_of(document)
            definitions[document.name].converter = conversions.define(document.name, crd["spec"])
    if unknown := functions.keys() - definitions.keys():
        raise UnusableConversion(f"--function: no CRD is named {', '.join(sorted(unknown))}")
    try:
        yield definitions
    finally:
        await client.close()


def _unreachable(conversion: Object, services: Mapping[Service, str]) -> str:
    """Why a webhook is not called, "" if it is, or if there is none."""
    if conversion.get("strategy") != "Webhook":
        return ""
    config = (conversion.get("webhook") or {}).get("clientConfig") or {}
    service = config.get("service")
    if service is not None:
        named = Service(service.get("namespace", ""), service.get("name", ""), service.get("port") or 443)
        return "" if named in services else "its webhook is a Service: say with --webhook-service where it is"
    host = urlsplit(config.get("url") or "").hostname or ""
    return "" if is_loopback(host) else f"its webhook at {host} is not called, because it is not on this machine"


# -- conversion ------------------------------------------------------------------------------------------------------


async def _convert(definitions: Mapping[str, Versions], objects: Sequence[Document], version: str) -> int:
    """Print the objects at a version. Raises UnusableConversion."""
    status, printed = 0, 0
    for document in objects:
        resource = _resource(definitions, document)
        target = resource.versions.find(f"{resource.group}/{version}")
        if target is None:
            known = ", ".join(each.version for each in resource.versions.all)
            raise UnusableConversion(
                f"{document.place()}: {resource.kind} has no version {version}; there are: {known}"
            )
        try:
            value = await converted(document.value, target)
        except ApiError as error:
            print(f"noxu: {document.place()}: {error.message}", file=sys.stderr)
            status = FOUND
            continue
        print(f"{'---' + chr(10) if printed else ''}{codec.to_yaml(value).decode()}", end="")
        printed += 1
    return status


def _resource(definitions: Mapping[str, Versions], document: Document) -> Resource:
    """The version of an object. Raises UnusableConversion."""
    for versions in definitions.values():
        found = versions.find(str(document.value.get("apiVersion")))
        if found is not None and found.kind == document.kind:
            return found
    raise UnusableConversion(
        f"{document.place()}: no CRD in the files defines {document.value.get('apiVersion')} {document.kind}"
    )


# -- the law of round trips ------------------------------------------------------------------------------------------


class VersionPair(NamedTuple):
    """What became of objects on their way from a version to another one and back."""

    name: str
    way: str
    trips: list[RoundTrip]

    @property
    def broken(self) -> list[RoundTrip]:
        return [trip for trip in self.trips if not trip.holds]


async def _check(definitions: Mapping[str, Versions], objects: Sequence[Document], options: argparse.Namespace) -> int:
    """Convert objects to each other version and back, and print what changes. Raises CannotGenerate, UnusableConversion."""
    known = dict.fromkeys(each.version for versions in definitions.values() for each in versions.all)
    if options.to and options.to not in known:
        raise UnusableConversion(f"no CRD has a version {options.to}; there are: {', '.join(known) or 'none'}")
    own: dict[str, list[Object]] = {}
    for document in objects:
        resource = _resource(definitions, document)
        own.setdefault(resource.api_version + resource.plural, []).append(document.value)
    pairs = []
    for name, versions in sorted(definitions.items()):
        for home, other in permutations(versions.all, 2):
            if not options.to or options.to in (home.version, other.version):
                values = [
                    *own.get(home.api_version + home.plural, ()),
                    *generated(home, options.round_trips, options.seed),
                ]
                trips = [await round_trip(value, home, other) for value in values]
                pairs.append(VersionPair(name, f"{home.version} → {other.version} → {home.version}", trips))
    printed = _as_json(pairs) if options.output == "json" else "\n".join(_text(pairs))
    print(printed or "no CRD has several versions")
    return FOUND if any(pair.broken for pair in pairs) else 0


def _text(pairs: Iterable[VersionPair]) -> Iterator[str]:
    for pair in pairs:
        broken, count = pair.broken, len(pair.trips)
        if not broken:
            yield f"{pair.name}: {pair.way}: {count} objects return as they were"
            continue
        reasons = ", ".join(dict.fromkeys(trip.why for trip in broken))
        yield f"{pair.name}: {pair.way}: {len(broken)} of {count} objects change: {reasons}"
        shown = sorted((_content(trip.value), trip.why) for trip in broken)
        for content, why in sorted(shown, key=lambda pair: len(pair[0]))[:_SHOWN]:
            yield f"    {content}: {why}"


def _content(value: Object) -> str:
    return compact_json({name: item for name, item in value.items() if name not in ("apiVersion", "kind", "metadata")})


def _as_json(pairs: Iterable[VersionPair]) -> str:
    listed = [
        {
            "definition": pair.name,
            "way": pair.way,
            "objects": len(pair.trips),
            "broken": [
                {"object": trip.value, "fields": [path for path, _, _ in trip.changed], "error": trip.error}
                for trip in pair.broken
            ],
        }
        for pair in pairs
    ]
    return codec.pretty({"pairs": listed}, sort_keys=False).decode().rstrip()
