"""Replacements that are known to change nothing: a server that skips them stores and refuses what one does that repeats them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from noxu.control_plane import ControlPlane, running
from noxu.crd import known_definitions
from noxu.crd.known_definitions import (
    KnownDefinitions,
    Unchanged,
    ValidSpecs,
    digest_of_replacement,
    unchanged_from_json,
)
from noxu.features import Features
from noxu.manifests import documents as manifests
from noxu.manifests import loading
from noxu.registry.draft import Action, WriteRequest
from noxu.registry.reader import key_of
from noxu.values import Json, Object
from noxu_storage.memory import MemoryStore
from noxu_storage.types import EVERYTHING
from tests.clocks import StoppedClock
from tests.control_planes import assemble
from tests.controllers.conftest import definition
from tests.registry.world import CountedIdentifiers
from tests.timing import eventually_async

Loaded = tuple[list[str], dict[Any, bytes]]
Change = Callable[[ControlPlane], Awaitable[object]]


def known() -> KnownDefinitions:
    return KnownDefinitions(ValidSpecs(), Unchanged())


@asynccontextmanager
async def server(**options: Any) -> AsyncIterator[ControlPlane]:
    async with running(
        assemble(MemoryStore(), clock=StoppedClock(), identifiers=CountedIdentifiers().identifiers, **options)
    ) as plane:
        yield plane


async def load(plane: ControlPlane, values: Sequence[Json], known: KnownDefinitions | None) -> Loaded:
    """The errors, and everything that is stored then."""
    body = json.dumps({"kind": "List", "items": values}).encode()
    documents = loading.ready(map(loading.packed, manifests.read(body, "crds.json")))
    errors = await loading.load(plane, documents, definitions=known)
    return errors, {item.key: item.value for item in (await plane.store.list(EVERYTHING)).items}


class Writes:
    """Counts the definitions that a server replaces."""

    def __init__(self, plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        write = plane.writer.write

        def counted(request: WriteRequest, *rest: Any) -> Any:
            self.count += request.action is Action.REPLACE and request.resource.plural == "customresourcedefinitions"
            return write(request, *rest)

        monkeypatch.setattr(plane.writer, "write", counted)


GADGETS: Final = definition("gadgets", "Gadget", shortNames=["gd"])
CRDS: Final = [definition(), GADGETS]
REFUSED: Final = definition(plural="others", kind="other kind")


def with_label(crd: Object) -> Object:
    return {**crd, "metadata": {**crd["metadata"], "labels": {"a": "b"}}}


async def edit(plane: ControlPlane) -> None:
    """Another client changes the definition."""
    await loading.apply(plane, with_label(definition(kind="Widget", shortNames=["w"])))


async def delete(plane: ControlPlane) -> None:
    crds = plane.served_resources.current.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    assert crds is not None
    await plane.writer.write(WriteRequest(Action.DELETE, crds, "", "widgets.example.com"))
    entries = (await plane.reader.collection(crds)).entries
    await eventually_async(lambda: key_of(crds, "", "widgets.example.com") not in entries)


WEBHOOK: Final[Object] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": "refuses"},
    "webhooks": [
        {
            "name": "refuses.example.com",
            "clientConfig": {"url": "https://localhost:1/refuse"},
            "rules": [
                {
                    "apiGroups": ["apiextensions.k8s.io"],
                    "apiVersions": ["*"],
                    "operations": ["UPDATE"],
                    "resources": ["customresourcedefinitions"],
                }
            ],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail",
        }
    ],
}


async def configure_webhook(plane: ControlPlane) -> None:
    await loading.apply(plane, WEBHOOK)


async def nothing(_: ControlPlane) -> None:
    """Nothing happens between the two starts."""


CHANGES: dict[str, tuple[Change, Sequence[Json], int]] = {
    "nothing changes": (nothing, CRDS, 0),
    "one is deleted": (delete, CRDS, 0),
    "another client has edited one": (edit, CRDS, 1),
    "one has another label": (nothing, [with_label(definition()), GADGETS], 1),
    "the order of fields is another one": (nothing, [dict(reversed(definition().items())), GADGETS], 1),
    "one is new": (nothing, [*CRDS, definition("things", "Thing")], 0),
    "one is invalid": (nothing, [definition(singular="Not A Name"), GADGETS], 1),
    "the same one twice": (nothing, [definition(), *CRDS], 0),
    "there is a webhook": (configure_webhook, CRDS, 2),
}


@pytest.mark.parametrize(("change", "second", "replaced"), CHANGES.values(), ids=CHANGES)
async def test_what_is_loaded_again_is_stored_and_refused_as_without_what_is_known(
    change: Change, second: Sequence[Json], replaced: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    kept = known()
    for each in (None, kept):
        async with server() as plane:
            for _ in range(3):  # created; replaced, which changes nothing; replaced again
                await load(plane, [*CRDS, REFUSED], each)
            await change(plane)
            writes = Writes(plane, monkeypatch)
            found.append(await load(plane, second, each))
    assert found[0] == found[1]
    assert writes.count == replaced


async def test_a_replacement_is_repeated_until_it_has_changed_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, counts = known(), []
    async with server() as plane:
        for values in (CRDS, CRDS, CRDS, [with_label(definition()), GADGETS], [with_label(definition()), GADGETS]):
            writes = Writes(plane, monkeypatch)
            await load(plane, values, kept)
            counts.append(writes.count)
            monkeypatch.undo()
    assert counts == [0, 2, 0, 1, 1]


async def test_a_refused_replacement_is_refused_again() -> None:
    kept = known()
    async with server() as plane:
        await load(plane, CRDS, kept)
        refused = [definition(kind="other kind")]
        assert (await load(plane, refused, kept))[0] == (await load(plane, refused, kept))[0] != []


@pytest.mark.parametrize(
    ("options", "replaced"),
    [
        ({}, 0),
        ({"features": Features(ratcheting=False)}, 2),
        ({"admission_plugins": frozenset({"OwnerReferencesPermissionEnforcement"})}, 2),
    ],
    ids=["the same options", "other features", "a plug-in that asks for permission"],
)
async def test_what_is_known_depends_on_the_options_of_the_server(
    options: dict[str, Any], replaced: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = known()
    async with server() as plane:
        for _ in range(2):
            await load(plane, CRDS, kept)
    async with server(**options) as plane:
        await load(plane, CRDS, None)
        writes = Writes(plane, monkeypatch)
        await load(plane, CRDS, kept)
    assert writes.count == replaced


def test_replacements_that_differ_in_anything_have_other_digests() -> None:
    texts = [(b"", b""), (b"a", b""), (b"", b"a"), (b"ab", b"c"), (b"a", b"bc")]
    digests = {
        digest_of_replacement(*pair, features) for pair in texts for features in (Features(), Features(cbor=True))
    }
    assert len(digests) == 2 * len(texts)


def test_only_the_replacements_that_were_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_definitions, "MAX_REPLACEMENTS", 2)
    found = unchanged_from_json(["a", "b", "c"])
    assert found.has("a")
    found.add("d")
    assert found.as_json() == ["a", "d"]


@pytest.mark.parametrize("value", [None, {}, 1, [1], [None, "a"]])
def test_anything_else_than_digests_counts_as_none(value: Any) -> None:
    assert unchanged_from_json(value).as_json() == []
