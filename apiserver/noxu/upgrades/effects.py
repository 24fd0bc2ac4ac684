"""What a new CRD changes for an object that is stored by the former one.

    refused      created anew it has errors, and so has an update that leaves it as it is
    forgiven     created anew it has errors, but ratcheting accepts updates that leave its invalid fields alone
    pruned       a field is not shown any more, and disappears with the next write
    defaulted    a field is shown with a value that it did not have
    unreadable   it is stored in a version that the new CRD does not have

Only what is new counts: errors that it has by the former CRD, and fields that this hides, are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from noxu.api.field import FieldError, Path
from noxu.crd.types import served_versions, storage_version
from noxu.registry.draft import Action, WriteRequest, draft_for
from noxu.registry.resource import Resource, Versions
from noxu.registry.strategies import STRATEGIES, revalidate
from noxu.schema.structural import MISSING
from noxu.upgrades.schema_places import differing_fields, with_any_index
from noxu.values import Object, copy

MAX_FIELDS: Final = 1000
"""The fields that are counted for a CRD: names in maps are chosen by users."""


class ObjectEffect(NamedTuple):
    """`errors` are those of a create; `forgiven`: an update that changes nothing has none."""

    errors: list[FieldError]
    forgiven: bool
    pruned: list[Path]
    defaulted: list[Path]
    unreadable: str

    @property
    def refused(self) -> bool:
        return bool(self.errors) and not self.forgiven


def effect_of(stored: Object, old: Versions, new: Versions, former: Object | None = None) -> ObjectEffect:
    """The effect on an object as it is stored, which is not changed. `former`: what an update replaces with it; None: itself."""
    before, after = copy(stored), copy(stored)
    was, now = revalidate(before, old), revalidate(after, new)  # in place: both are as a server shows them
    known = {str(error) for error in was.errors}
    errors = [error for error in now.errors if str(error) not in known]
    hidden = set(was.hidden)
    pruned = [path for path in now.hidden if path not in hidden]
    defaulted = [path for path, _, value in differing_fields(before, after) if value is not MISSING]
    api_version = stored.get("apiVersion", "")
    updated = after if former is None else _at_new(former, new)
    gone = f"no version {api_version.rpartition('/')[2]}" if new.find(api_version) is None else ""
    return ObjectEffect(
        errors,
        bool(errors)
        and not [error for error in _update_errors(updated, after, now.resource) if str(error) not in known],
        pruned,
        [path for path in defaulted if path != "apiVersion"],
        gone,
    )


def _at_new(former: Object, new: Versions) -> Object:
    """As the new CRD shows it."""
    shown: Object = copy(former)
    revalidate(shown, new)  # in place
    return shown


def _update_errors(former: Object, value: Object, resource: Resource) -> list[FieldError]:
    """Those of an update from one object to another, with the same metadata."""
    draft = draft_for(WriteRequest(Action.REPLACE, resource))
    metadata = {"resourceVersion": "1", **former["metadata"]}
    draft.old, draft.new = {**former, "metadata": metadata}, copy({**value, "metadata": metadata})
    STRATEGIES[resource.type].validate(draft)
    return draft.outcome.errors


class AffectedObject(NamedTuple):
    """`Widget default/large`, and what happens to it."""

    title: str
    effect: ObjectEffect


@dataclass
class DefinitionPreview:
    """The effects on the objects of a CRD. `listed` are the first `limit` of those that something happens to.

    `pruned` and `defaulted` count the objects by field, with `[*]` for indexes. `versions` are sentences about versions that
    the new CRD does not serve or have.
    """

    name: str
    limit: int
    versions: list[str] = field(default_factory=list)
    objects: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    pruned: Counter[str] = field(default_factory=Counter)
    defaulted: Counter[str] = field(default_factory=Counter)
    listed: list[AffectedObject] = field(default_factory=list)

    def add(self, title: str, effect: ObjectEffect) -> None:
        self.objects += 1
        happened = [name for name in EFFECTS_ON_OBJECTS if getattr(effect, name)]
        self.counts.update(happened)
        for counter, paths in ((self.pruned, effect.pruned), (self.defaulted, effect.defaulted)):
            for path in dict.fromkeys(map(with_any_index, paths)):
                if path in counter or len(counter) < MAX_FIELDS:
                    counter[path] += 1
        if {"refused", "forgiven", "unreadable"}.intersection(happened) and len(self.listed) < self.limit:
            self.listed.append(AffectedObject(title, effect))

    @property
    def breaks(self) -> bool:
        return bool(self.versions) or any(self.counts[name] for name in ("refused", "pruned", "unreadable"))


EFFECTS_ON_OBJECTS: Final = ("refused", "forgiven", "pruned", "defaulted", "unreadable")


def versions_gone(old: Object, new: Object) -> Iterator[str]:
    """What happens to versions; both CRDs are decoded ones of v1."""
    before, now = served_versions(old), served_versions(new)
    for version in before:
        if version not in now:
            yield f"version {version} is no longer served: requests for it are answered with 404"
    remaining = {version["name"] for version in new["spec"]["versions"]}
    stored = (old.get("status") or {}).get("storedVersions") or [storage_version(old)]
    for version in stored:
        if version not in remaining:
            yield f"version {version} is gone, and status.storedVersions has it: servers refuse the CRD; `noxu migrate` first"
