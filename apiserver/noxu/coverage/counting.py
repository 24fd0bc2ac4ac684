"""What one write shows of a schema: the fields that it sets, the defaults that it takes, enum values, what rules say.

    {"writes": 1,
     "fields": {"spec.size": {"set": 1}, "spec.mode": {"defaulted": 1, "values": {"\\"fast\\"": 1}}},
     "rules": {"spec": {"self.size < 4": {"false": 1}}}}

A number says in how many writes something happened: `add` and `merged` add them up. Paths are those of the schema, with `[*]` for the
items of a list and the values of a map. A refused write counts like any other: that is how a rule is seen false. Rules are
evaluated here once more, because the pipeline only says which of them have failed; as there, they are not if an error of the
schema comes first. What the server alone sets (apiVersion, kind, metadata) has no counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from noxu.api import codec
from noxu.api.field import Path, child
from noxu.schema import validation
from noxu.schema.structural import MISSING, Structural
from noxu.values import Json, Object

if TYPE_CHECKING:
    from noxu.cel import RuleValidator

OF_SERVER: Final = ("apiVersion", "kind", "metadata")
"""Fields of every object."""
STATUS: Final = "status"


class CountedWrite(NamedTuple):
    """A write as it is after defaulting. `rules` None: there are none.

    `given` are the objects that say what was set: the body, and for a change of parts the old object. What none of them has was
    filled in. `status_apart`: the status is a subresource; `of_status`: that is written.
    """

    schema: Structural
    rules: RuleValidator | None
    new: Object
    old: Object | None
    given: Sequence[Json]
    status_apart: bool = False
    of_status: bool = False

    @property
    def fields(self) -> Object:
        """The fields that this write is about."""
        if self.of_status:
            return {name: value for name, value in self.new.items() if name == STATUS}
        left_out = {*OF_SERVER, STATUS} if self.status_apart else {*OF_SERVER}
        return {name: value for name, value in self.new.items() if name not in left_out}


def counts(write: CountedWrite) -> Object:
    """The counts of one write, which may be invalid."""
    fields: Object = {}
    for seen in _seen(write.fields, "", write.schema, write.given, is_filled=False):
        at = fields.setdefault(seen.path, {})
        if seen.how:
            at[seen.how] = 1
        if seen.value is not None:
            at.setdefault("values", {})[seen.value] = 1
    rules: Object = {}
    for place, rule, holds in _outcomes(write):
        rules.setdefault(place, {}).setdefault(rule, {})["true" if holds else "false"] = 1
    return {"writes": 1, "fields": fields, "rules": rules}


def _outcomes(write: CountedWrite) -> Iterator[tuple[Path, str, bool]]:
    if write.rules is None:
        return
    if validation.blocks_rules(validation.validate(write.new, write.schema)):
        return
    for place, rule, holds in write.rules.outcomes(write.new, write.old):
        of_status = place == STATUS or place.startswith((f"{STATUS}.", f"{STATUS}["))
        if not write.status_apart or not place or of_status == write.of_status:
            yield place, rule, holds


def merged(several: Iterable[Object]) -> Object:
    """The sum of counts, for any level of them. What is given remains as it is."""
    total: Object = {}
    for one in several:
        add(total, one)
    return total


def add(total: Object, one: Object) -> None:
    """Add counts to others, in place."""
    for name, value in one.items():
        if isinstance(value, dict):
            add(total.setdefault(name, {}), value)  # total's own: nothing of `one` is kept
        else:
            total[name] = total.get(name, 0) + value


# -- the fields of an object -------------------------------------------------------------------------------------------


class _Seen(NamedTuple):
    """`how`: set, defaulted, or "" for a part of a default. `value`: that of an enum, as JSON."""

    path: Path
    how: str
    value: str | None


def _seen(value: Json, path: Path, schema: Structural, given: Sequence[Json], *, is_filled: bool) -> Iterator[_Seen]:
    """What is below a value. `is_filled`: it is a default itself."""
    if isinstance(value, dict):
        for name, inner in value.items():
            declared = schema.properties.get(name)
            place, node = (f"{path}[*]", schema.values) if declared is None else (child(path, name), declared)
            if node is not None:
                below = [each[name] for each in given if isinstance(each, dict) and name in each]
                yield from _at(inner, place, node, below, is_filled=is_filled)
    elif isinstance(value, list) and schema.items is not None:
        for n, inner in enumerate(value):
            below = [item for each in given for item in _counterpart(inner, n, each, schema)]
            yield from _at(inner, f"{path}[*]", schema.items, below, is_filled=is_filled)


def _at(value: Json, path: Path, schema: Structural, given: Sequence[Json], *, is_filled: bool) -> Iterator[_Seen]:
    default_taken = not given and schema.default is not MISSING
    how = "defaulted" if default_taken else "" if is_filled else "set"
    written = None
    if schema.validation.enum and value in schema.validation.enum:
        written = codec.encode(value, sort_keys=True).decode()
    yield _Seen(path, how, written)
    yield from _seen(value, path, schema, given, is_filled=is_filled or default_taken)


def _counterpart(item: Json, n: int, given: Json, schema: Structural) -> list[Json]:
    """The item of a given list that became an item: that with the same keys, or at the same place; none: []."""
    if not isinstance(given, list):
        return []
    if schema.list_type != "map" or not isinstance(item, dict):
        return given[n : n + 1]
    # a key may itself be a default, which the given item lacks
    return [
        each
        for each in given
        if isinstance(each, dict) and all(each.get(key, item.get(key)) == item.get(key) for key in schema.list_map_keys)
    ][:1]
