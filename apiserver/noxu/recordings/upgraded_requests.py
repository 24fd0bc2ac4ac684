"""Which requests of a recording a new CRD answers in another way: the clients that an upgrade breaks.

    refused      a write that was accepted has errors by the new CRD, which ratcheting does not forgive
    pruned       a field that it writes or reads is not kept, or not shown, any more
    defaulted    a field that it writes or reads has a value that it did not have
    not served   it asks for a version that the new CRD does not serve: 404

Nothing is sent anywhere: the objects that were written, and those that were answered, are judged by both CRDs (`upgrades.effects`).
A write that replaces, patches or applies is judged with the object that was there before it, as the recording has it. Requests
that were refused, and the events of watches, are not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from noxu.api.field import Path
from noxu.recordings.lines import Place, parse_path
from noxu.registry.resource import Versions
from noxu.upgrades.effects import ObjectEffect, effect_of
from noxu.upgrades.schema_places import with_any_index
from noxu.values import Json, Object

EFFECTS_ON_REQUESTS: Final = ("refused", "pruned", "defaulted", "not served")
_WRITES: Final = ("POST", "PUT", "PATCH")
_STATES: Final = 4
"""States of an object that are kept: the line of a write may be before that of its request."""
_JUDGED_SUBRESOURCES: Final = ("", "status")


class ChangedRequest(NamedTuple):
    """A request that is refused now. `request` is its method and path, `error` the first thing that the server would say."""

    step: int
    request: str
    error: str


@dataclass
class ClientPreview:
    """What becomes of the requests of a client for the objects of a CRD. `listed` are the first `limit` that are refused.

    `counts` are numbers of requests, by effect. `pruned` and `defaulted` count them by verb (`writes`, `reads`) and field,
    `versions` by the version that is gone.
    """

    client: str
    limit: int
    requests: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    pruned: Counter[tuple[str, Path]] = field(default_factory=Counter)
    defaulted: Counter[tuple[str, Path]] = field(default_factory=Counter)
    versions: Counter[str] = field(default_factory=Counter)
    listed: list[ChangedRequest] = field(default_factory=list)

    @property
    def breaks(self) -> bool:
        return any(self.counts[name] for name in EFFECTS_ON_REQUESTS if name != "defaulted")


class UpgradedDefinition(NamedTuple):
    """The versions of a CRD before and after its upgrade."""

    before: Versions
    after: Versions


Clients = Mapping[str, Mapping[str, ClientPreview]]
"""By the name of the CRD, and the title of the client."""


def clients_of(lines: Iterable[Object], definitions: Mapping[str, UpgradedDefinition], limit: int) -> Clients:
    """The clients that have asked for objects of these CRDs, whose names are their keys. `limit`: see `ClientPreview`."""
    judged = _Judging(definitions, limit)
    for line in lines:
        judged.add(line)
    return judged.clients


class _Judging:
    """Goes through a recording, and keeps the newest states of the objects in it."""

    def __init__(self, definitions: Mapping[str, UpgradedDefinition], limit: int) -> None:
        self._definitions, self._limit = definitions, limit
        self._states: dict[Place, list[tuple[int, Object]]] = {}
        self._read: dict[tuple[str, ...], ObjectEffect] = {}  # by what identifies a state: many are read many times
        self.clients: dict[str, dict[str, ClientPreview]] = {name: {} for name in definitions}

    def add(self, line: Object) -> None:
        if "stored" in line:
            self._keep(line, line["stored"])
        elif "write" in line:
            self._keep(line["write"], line["write"].get("object"))
        elif "step" in line:
            self._add_step(line)

    def _keep(self, described: Object, value: Json) -> None:
        if described.get("resource") in self._definitions and isinstance(value, dict):
            place = (described["resource"], described.get("namespace") or "", described.get("name") or "")
            states = self._states.setdefault(place, [])
            states.append((int(described.get("revision") or 0), value))
            del states[:-_STATES]

    def _add_step(self, line: Object) -> None:
        place, version, subresource = parse_path(str(line.get("watch") or line.get("path") or ""))
        answer = line.get("expect") or {}
        if place[0] not in self._definitions or int(answer.get("code") or 0) >= 400:
            return
        known = self.clients[place[0]]
        title = _title(line.get("client") or {})
        client = known.setdefault(title, ClientPreview(title, self._limit))
        client.requests += 1
        definition = self._definitions[place[0]]
        api_version = f"{definition.after.storage.group}/{version}"
        if _serves(definition.before, api_version) and not _serves(definition.after, api_version):
            client.counts["not served"] += 1
            client.versions[version] += 1
        elif "watch" not in line and subresource in _JUDGED_SUBRESOURCES:
            self._judge(line, place, api_version, client)

    def _judge(self, line: Object, place: Place, api_version: str, client: ClientPreview) -> None:
        method = str(line["method"])
        is_write = method in _WRITES
        if not is_write and method != "GET":
            return
        definition = self._definitions[place[0]]
        happened: dict[str, None] = {}
        paths: dict[str, dict[Path, None]] = {"pruned": {}, "defaulted": {}}
        for value in _objects(line, api_version, definition.before.storage.kind, is_write=is_write):
            former = self._former(line, place) if is_write else None
            effect = effect_of(value, *definition, former) if is_write else self._shown(value, definition)
            is_refused = effect.refused if former is not None else bool(effect.errors)  # ratcheting is for updates
            if is_write and is_refused and "refused" not in happened:
                happened["refused"] = None
                if len(client.listed) < client.limit:
                    client.listed.append(
                        ChangedRequest(int(line["step"]), f"{method} {line['path']}", str(effect.errors[0]))
                    )
            for name in paths:
                paths[name] |= dict.fromkeys(map(with_any_index, getattr(effect, name)))
        verb = "writes" if is_write else "reads"
        for name, counter in (("pruned", client.pruned), ("defaulted", client.defaulted)):
            if paths[name]:
                happened[name] = None
                counter.update((verb, path) for path in paths[name])
        client.counts.update(list(happened))

    def _shown(self, value: Object, definition: UpgradedDefinition) -> ObjectEffect:
        """The effect on an object that is read."""
        metadata = value["metadata"]
        identity = (str(value["apiVersion"]), str(metadata.get("uid")), str(metadata.get("resourceVersion")))
        if identity not in self._read:
            self._read[identity] = effect_of(value, *definition)
        return self._read[identity]

    def _former(self, line: Object, place: Place) -> Object | None:
        """The object before a write, None if it is not known, or if the write has created it."""
        if line["method"] == "POST":
            return None
        answered = (line.get("expect") or {}).get("body")
        written = _revision(answered) if isinstance(answered, dict) else 0
        older = [value for revision, value in self._states.get(place, ()) if not written or revision < written]
        return older[-1] if older else None


def _serves(versions: Versions, api_version: str) -> bool:
    resource = versions.find(api_version)
    return resource is not None and resource.served


def _title(client: Object) -> str:
    """`kubectl (jane)`: the program, without its version and machine, and the user."""
    agent = str(client.get("agent") or "unknown").partition("/")[0]
    return f"{agent} ({client['user']})" if client.get("user") else agent


def _revision(value: Object) -> int:
    text = (value.get("metadata") or {}).get("resourceVersion") if isinstance(value.get("metadata"), dict) else None
    return int(text) if isinstance(text, str) and text.isdecimal() else 0


def _objects(line: Object, api_version: str, kind: str, *, is_write: bool) -> Iterator[Object]:
    """The objects of a kind that a request is about: what is sent as a whole, or what is answered, also in a list."""
    answered, sent = (line.get("expect") or {}).get("body"), line.get("body")
    is_whole = line["method"] in ("POST", "PUT") and "/status" not in str(line["path"])
    body = sent if is_write and is_whole and isinstance(sent, dict) else answered
    if not isinstance(body, dict):
        return
    items = body["items"] if body.get("kind") == f"{kind}List" and isinstance(body.get("items"), list) else [body]
    for item in items:
        if isinstance(item, dict) and isinstance(item.get("metadata"), dict):
            named = {"apiVersion": api_version, "kind": kind, **item}
            if (named["apiVersion"], named["kind"]) == (api_version, kind):  # neither a Table nor metadata only
                yield named
