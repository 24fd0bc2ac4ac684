"""The changes between the former and the new CRDs: what breaks, what only may, and what does not.

    breaking     an object that the former CRD serves, accepts and keeps is not served, refused, pruned or shown otherwise now
    unknown      that depends on the objects and on their clients: a rule or a pattern has changed, there is a default now
    compatible   the new CRD serves, accepts or keeps more

What both CRDs have is no change, be it a problem or not. `crd.lint.narrowings` finds the candidates: what breaks is what the
new CRD narrows, what is compatible is what the former one would narrow if it came later. A candidate of unknown effect breaks
if an example is found that shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from noxu.api.field import Path
from noxu.cel import SchemaRules
from noxu.crd import lint
from noxu.expressions import expression
from noxu.generation.kinds import versions_of
from noxu.generation.valid import CannotGenerate
from noxu.manifests.documents import Document, LoadError, is_crd
from noxu.registry.resource import Resource, Versions
from noxu.schema.narrowing import Narrowing
from noxu.schema.structural import NoStructuralForm, Structural
from noxu.upgrades.examples import ChangeExample, example_of
from noxu.upgrades.schema_places import SchemaPlace, node_at, place_of, version_index, with_version
from noxu.values import Object

Effect = Literal["breaking", "unknown", "compatible"]
EFFECTS: Final[tuple[Effect, ...]] = ("breaking", "unknown", "compatible")


class DefinitionChange(NamedTuple):
    """`rule` is the kind of change; `version` and `field` say where it is in objects, `path` where in the new CRD."""

    effect: Effect
    rule: str
    message: str
    version: str = ""
    field: str = ""
    path: Path = ""
    example: ChangeExample | None = None

    @property
    def where(self) -> str:
        """`v1 spec.size`."""
        return f"{self.version} {self.field}".strip()


class ChangedDefinition(NamedTuple):
    """A CRD with its changes, the breaking ones first. A CRD that is gone has no new `document`, a new one no `former`."""

    name: str
    former: Document | None
    document: Document | None
    changes: Sequence[DefinitionChange]

    def count(self, effect: Effect) -> int:
        return sum(change.effect == effect for change in self.changes)


def compared(old: Iterable[Document], new: Iterable[Document], *, examples: bool = True) -> list[ChangedDefinition]:
    """All CRDs of both, by name. Documents that are no CRDs are ignored. `examples`: whether some are looked for."""
    before, now = _by_name(old), _by_name(new)
    return [
        ChangedDefinition(name, former, document, _sorted(_changes(former, document, examples)))
        for name in sorted({*before, *now})
        for former, document in [(before.get(name), now.get(name))]
    ]


def _by_name(documents: Iterable[Document]) -> Mapping[str, Document]:
    return {document.name: document for document in documents if is_crd(document.value)}


def _sorted(changes: Iterable[DefinitionChange]) -> list[DefinitionChange]:
    return sorted(changes, key=lambda change: EFFECTS.index(change.effect))


def _changes(former: Document | None, document: Document | None, examples: bool) -> Iterator[DefinitionChange]:
    if document is None:
        yield DefinitionChange("breaking", "definition-removed", "the CRD is gone, and with it all of its objects")
        return
    if former is None:
        yield DefinitionChange("compatible", "definition-added", "the CRD is new")
        return
    before, now = lint.as_v1(former.value), lint.as_v1(document.value)
    if before is None or now is None or not (before["spec"].get("versions") and now["spec"].get("versions")):
        yield DefinitionChange("breaking", "unreadable", "one of the CRDs cannot be read; `noxu lint` says more")
        return
    yield from _refusals(former, document)
    versions = (_versions(former), _versions(document)) if examples else (None, None)
    served = _served(before) | _served(now)
    reported = set()
    for narrowing in lint.narrowings(before, now):
        change = _change(narrowing, now, served, *versions)
        reported.add((change.version, change.field, change.rule))
        yield change
    places = {version["name"]: n for n, version in enumerate(now["spec"]["versions"])}
    for widening in lint.narrowings(now, before):
        wider = _compatible(widening, before, places)
        if wider is not None and not ((wider.version, wider.field, widening.rule) in reported and _is_both(widening)):
            yield wider


def _refusals(former: Document, document: Document) -> Iterator[DefinitionChange]:
    """Why a server refuses the update, unless it would refuse the former CRD for that."""
    known = {str(error) for error in lint.lint_crd(former.value, checkers=SchemaRules)}
    for error in lint.lint_crd(document.value, checkers=SchemaRules, old=former.value):
        if str(error) not in known:
            yield DefinitionChange("breaking", "refused", f"servers refuse the CRD: {error}", path=error.field)


def _versions(document: Document) -> Versions | None:
    try:
        return versions_of(document)
    except (CannotGenerate, LoadError, NoStructuralForm):
        return None


def _served(crd: Object) -> set[str]:
    """The versions in which there may be requests, or objects."""
    return {version["name"] for version in crd["spec"]["versions"] if version.get("served") or version.get("storage")}


# -- what the new CRD narrows ----------------------------------------------------------------------------------------


_UNKNOWN: Final = frozenset(
    {
        "narrower-pattern", "narrower-format", "narrower-multiple-of", "narrower-rule", "narrower-all-of",
        "narrower-any-of", "narrower-one-of", "narrower-not", "list-type-changed", "conversion-changed",
    }
)  # fmt: skip
"""Rules of changes that break if an example shows it, or if there was nothing of the kind before."""
_RULE: Final = "narrower-rule"
_WORD: Final = expression(r"[\w-]+")
_NOT_BREAKING: Final = frozenset({"storage-version-changed"})
_SEVERAL: Final = ("spec.names.shortNames", "spec.names.categories")
_OF_PEOPLE: Final = (*_SEVERAL, "spec.names.singular")
_UNUSED: Final = "; no server serves or stores this version"


def _change(
    narrowing: Narrowing, now: Object, served: set[str], old: Versions | None, new: Versions | None
) -> DefinitionChange:
    place, position = place_of(narrowing.path), version_index(narrowing.path)
    version = "" if position is None else now["spec"]["versions"][position]["name"]
    example, is_rule = None, narrowing.rule == _RULE
    is_certain = narrowing.rule not in _UNKNOWN or (narrowing.is_new and not is_rule)
    before, later = _at(old, version), _at(new, version)
    if place is not None and before is not None and later is not None:
        if is_rule and narrowing.is_new:
            is_certain = not _names_new(narrowing.subject, place, before.schema, later.schema)
        example = example_of(narrowing, place, before, later, is_certain=is_certain)
    effect, message = _effect(narrowing, is_certain or example is not None), narrowing.message
    if effect == "breaking" and version and version not in served:
        effect, message = "unknown", message + _UNUSED
    return DefinitionChange(
        effect, narrowing.rule, message, version, place.field if place else "", narrowing.path, example
    )


def _at(versions: Versions | None, version: str) -> Resource | None:
    return None if versions is None else next((each for each in versions.all if each.version == version), None)


def _names_new(rule: str, place: SchemaPlace, old: Structural | None, new: Structural | None) -> bool:
    """Whether a rule names a field or a member of an enum that is new: then it may be about new objects only."""
    new_names = _names(node_at(new, place.steps)) - _names(node_at(old, place.steps))
    return not new_names.isdisjoint(_WORD.findall(rule))


def _names(node: Structural | None) -> set[str]:
    """The names of the fields in a node, and the members of their enums."""
    if node is None:
        return set()
    names = {*node.properties, *(member for member in node.validation.enum if isinstance(member, str))}
    return names.union(*map(_names, (*node.properties.values(), node.items, node.values)))


def _effect(narrowing: Narrowing, is_certain: bool) -> Effect:
    if narrowing.rule in _NOT_BREAKING:
        return "compatible"
    if narrowing.rule == "names-changed" and narrowing.path in _OF_PEOPLE:
        return "unknown"
    if narrowing.rule == "default-changed" and narrowing.is_new:  # clients that leave the field out may mean just this
        return "unknown"
    return "breaking" if is_certain else "unknown"


# -- what it widens --------------------------------------------------------------------------------------------------


_WIDENED: Final[Mapping[str, str]] = {
    "narrower-type": "more types are accepted",
    "narrower-nullable": "null is accepted",
    "narrower-enum": "more values are accepted",
    "narrower-required": "a field is no longer required",
    "narrower-rule": "a rule is gone or has changed",
    "no-longer-kept": "the field is new",
    "subresource-removed": "a subresource is new",
    "field-selector-removed": "a field can be selected by",
    "names-changed": "a name is new",
}
_BOTH_WAYS: Final = frozenset(
    {
        "default-changed", "list-type-changed", "conversion-changed", "storage-version-changed", "scope-changed",
        "subresource-added", "subresource-changed",
    }
)  # fmt: skip
"""Changes that are found in either direction, and are reported once."""


def _compatible(widening: Narrowing, before: Object, places: Mapping[str, int]) -> DefinitionChange | None:
    """The change that the narrowing from the new CRD to the former one is, None if it is reported already."""
    is_reported = widening.rule == "names-changed" and widening.path not in _SEVERAL  # another name replaces it
    if widening.rule in _BOTH_WAYS or is_reported:
        return None
    place, position = place_of(widening.path), version_index(widening.path)
    message = _WIDENED.get(widening.rule, f"{widening.rule.removeprefix('narrower-')} allows more")
    if widening.rule == "version-removed":
        message = f"version {widening.subject} is {'new' if position is None else 'served now'}"
        return DefinitionChange("compatible", "version-added", message)
    version, path = "", widening.path
    if position is not None:
        version = before["spec"]["versions"][position]["name"]
        path = with_version(path, places[version])
    return DefinitionChange(
        "compatible", _of_widening(widening.rule), message, version, place.field if place else "", path
    )


def _is_both(widening: Narrowing) -> bool:
    """Whether another value in place of the former one is a narrowing in either direction."""
    return widening.rule in _UNKNOWN or widening.rule in ("narrower-type", "no-longer-kept")


def _of_widening(rule: str) -> str:
    """The rule of the opposite change: `narrower-enum` → `wider-enum`."""
    named = {"no-longer-kept": "field-added", "subresource-removed": "subresource-added"}
    return named.get(rule, rule.replace("narrower-", "wider-").replace("-removed", "-added"))
