"""Values that a schema and its rules accept.

Each value is made from the limits of its schema. Rules, `not` and the other branches of oneOf cannot be solved for, so a
value with any of them is made again until they hold: at the node that has them, where few choices matter, and not for
the whole object. After a rule has failed, the fields that it names are preferred, and texts that rules contain
(`self.type == 'Local'`) are always tried as values of the fields below.

Objects are small: of the optional fields of an object up to three are chosen, fewer the deeper it is, and no choice at
all makes the smallest object.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from noxu.api.field import FieldError, Path, child, index, key
from noxu.cel import RuleValidator
from noxu.expressions import expression
from noxu.generation.limits import Branches, ValueLimits, below, chosen, limits, of_items
from noxu.generation.texts import Choose, sample, text
from noxu.go.text import quote
from noxu.schema import embedded, listtype
from noxu.schema.defaulting import default
from noxu.schema.structural import Structural, of_schema
from noxu.schema.validation import validator
from noxu.values import Json, Object, copy

TRIES: Final = 60
"""How often a value is made again because its rules refuse it."""
MAX_STEPS: Final = 4_000
"""Values that are made for one object, with those that are made again."""
_OPTIONAL_FIELDS: Final = (3, 3, 2, 2, 1, 1)
"""How many are chosen at most, by depth; none below."""
_IDENTITY: Final[Object] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
_LITERAL: Final = expression(r"'([^']*)'|\"([^\"]*)\"")
_SPECIAL: Final = expression(r"[\[\\^$+*]")
_WORD: Final = expression(r"\w+")


class CannotGenerate(ValueError):
    """No value is found for a field: its bounds contradict each other, or its rules refuse everything that was tried."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.path = path


class ValueMaker:
    """Makes the values of one object. `choose` makes all choices."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._steps = 0

    def value(
        self, node: Structural, path: Path, above: Branches = (), words: Sequence[str] = (), depth: int = 0
    ) -> Json:
        """A value that a node of a schema, the branches of junctors above it and its rules accept. Raises CannotGenerate.

        `words` are the texts in the rules of the nodes above.
        """
        if node.nullable and self._choose(8) == 7:
            return None
        words = (*dict.fromkeys((*literals(node), *words)),)
        if not _is_checked(node, above):
            return self._made(node, path, chosen(node.validation, above, self._choose), words, depth, ())
        why, wanted, impossible = "", list[str](), None
        for _ in range(TRIES):
            parts = chosen(node.validation, above, self._choose)
            try:
                made = self._made(node, path, parts, words, depth, wanted)
            except CannotGenerate as error:
                if self._steps > MAX_STEPS:
                    raise
                impossible = error
                continue
            refused = refusals(made, node)
            if not refused:
                return made
            why = refused[0].body
            wanted = mentioned(node)
        if not why and impossible is not None:
            raise impossible  # of the same field in each attempt, or of one of few
        raise CannotGenerate(path, f"no value is found that satisfies its schema and rules; the last one: {why}")

    def _made(
        self, node: Structural, path: Path, parts: Branches, words: Sequence[str], depth: int, wanted: Sequence[str]
    ) -> Json:
        """A value within the limits of the parts. Raises CannotGenerate."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise CannotGenerate(path, f"no object is found within {MAX_STEPS} values")
        limit = limits(parts)
        if limit.enum is not None:
            return self._member(limit.enum, path)
        kind = node.type or limit.type
        if node.int_or_string:
            kind = limit.type or ("integer", "string")[self._choose(2)]
        if node.embedded_resource or (not kind and node.properties):
            kind = "object"
        if kind == "object":
            return self._object(node, path, parts, limit, words, depth, wanted)
        if kind == "array":
            return self._list(node, path, parts, limit, words, depth)
        if kind == "string":
            return self._text(path, limit, words)
        if kind in ("integer", "number"):
            return self._number(path, limit, kind)
        if kind == "boolean":
            return self._choose(2) == 1
        return copy((_EMPTY, "a", 1)[self._choose(3)])

    def _member(self, members: Sequence[Json], path: Path) -> Json:
        if not members:
            raise CannotGenerate(path, "the enums have no value in common")
        return copy(members[self._choose(len(members))])

    def _text(self, path: Path, limit: ValueLimits, words: Sequence[str]) -> str:
        if limit.longest is not None and limit.shortest > limit.longest:
            raise CannotGenerate(path, f"minLength {limit.shortest} is more than maxLength {limit.longest}")
        for pattern in limit.patterns or ("",):
            made = text(self._choose, pattern, limit.format, limit.shortest, limit.longest, words)
            if made is not None:
                return made
        asked = [f"the pattern {quote(pattern)}" for pattern in limit.patterns]
        asked += [f"the format {limit.format}"] * bool(limit.format)
        asked.append(f"{limit.shortest} to {limit.longest or 'any number of'} characters")
        raise CannotGenerate(path, f"no text is found with {', '.join(asked)}")

    def _number(self, path: Path, limit: ValueLimits, kind: str) -> Json:
        least, most = limit.least, limit.most
        if least > most:
            raise CannotGenerate(path, f"no number is at least {least:g} and at most {most:g}")
        step = limit.multiple_of or 1
        start = least if least > 0 or most == math.inf else max(least, most - 100 * step)
        start = 0 if start <= 0 <= most else start
        first = math.ceil(start / step) * step if start != -math.inf else 0
        span = 4 if most == math.inf else int(min(max((most - first) // step, 0), 4))
        number = first + step * self._choose(span + 1)
        if number > most and kind == "number" and not limit.multiple_of:
            number = start
        if number > most:
            raise CannotGenerate(path, f"no {kind} is at least {least:g} and at most {most:g}")
        return int(number) if number == int(number) else number

    def _list(
        self, node: Structural, path: Path, parts: Branches, limit: ValueLimits, words: Sequence[str], depth: int
    ) -> list[Json]:
        if limit.most_items is not None and limit.fewest_items > limit.most_items:
            raise CannotGenerate(path, f"minItems {limit.fewest_items} is more than maxItems {limit.most_items}")
        count = limit.fewest_items
        if limit.most_items is None or count < limit.most_items:
            count += self._choose(3 if depth < 4 else 2)
        count = min(count, limit.most_items if limit.most_items is not None else count)
        made: list[Json] = []
        for _ in range(count + TRIES):
            if node.items is None or len(made) >= count:
                break
            try:
                item = self.value(node.items, index(path, len(made)), of_items(parts), words, depth + 1)
            except CannotGenerate:
                if limit.fewest_items:
                    raise
                break
            if node.list_type not in ("set", "map") or not listtype.has_errors([*made, item], node):
                made.append(item)
        if len(made) < limit.fewest_items:
            raise CannotGenerate(path, f"there are not {limit.fewest_items} different items")
        return made

    def _object(
        self,
        node: Structural,
        path: Path,
        parts: Branches,
        limit: ValueLimits,
        words: Sequence[str],
        depth: int,
        wanted: Sequence[str],
    ) -> Object:
        made: Object = copy(_IDENTITY) if node.embedded_resource else {}
        required = [name for name in (*node.properties, *sorted(limit.required)) if name in limit.required]
        for name in dict.fromkeys(required):
            if name not in made:
                made[name] = self._field(node, name, path, parts, words, depth)
        for name in self._optional(node, made, limit, depth, wanted):
            try:
                made[name] = self._field(node, name, path, parts, words, depth)
            except CannotGenerate:
                if self._steps > MAX_STEPS:
                    raise
        if node.values is not None:
            for n in range(max(limit.fewest_fields - len(made), self._choose(3) if depth < 5 else 0)):
                if limit.most_fields is not None and len(made) >= limit.most_fields:
                    break
                name = words[n] if n < len(words) and self._choose(4) == 3 else "abcdefghij"[n % 10] * (1 + n // 10)
                made[name] = self.value(node.values, key(path, name), below(parts, name), words, depth + 1)
        return made

    def _field(
        self, node: Structural, name: str, path: Path, parts: Branches, words: Sequence[str], depth: int
    ) -> Json:
        inner = node.properties.get(name, node.values)
        if inner is None:  # required, and not declared: it is pruned unless unknown fields are preserved
            return "a"
        return self.value(inner, child(path, name), below(parts, name), words, depth + 1)

    def _optional(
        self, node: Structural, made: Object, limit: ValueLimits, depth: int, wanted: Sequence[str]
    ) -> list[str]:
        """The names of optional fields that are chosen."""
        names = [
            name for name in node.properties if name not in made and not (node.embedded_resource and name in _IDENTITY)
        ]
        most = _OPTIONAL_FIELDS[depth] if depth < len(_OPTIONAL_FIELDS) else 0
        picked = [name for name in dict.fromkeys(wanted) if name in names and self._choose(2)]
        names = [name for name in names if name not in picked]
        fewest = max(0, limit.fewest_fields - len(made) - len(picked)) if node.values is None else 0
        count = min(len(names), fewest + self._choose(most + 1 - bool(picked) * min(most, 1)))
        picked += [names.pop(self._choose(len(names))) for _ in range(count)]
        room = len(picked) if limit.most_fields is None else max(0, limit.most_fields - len(made))
        return picked[:room]


_EMPTY: Final[Object] = {}


def refusals(value: Json, node: Structural) -> list[FieldError]:
    """The errors of a value by a node of a schema: defaults are filled in first."""
    complete = copy(value)
    default(complete, node)
    errors = validator(node).validate(complete) + listtype.validate(complete, node)
    if node.embedded_resource:
        errors += embedded.validate(complete, node)
    if errors:
        return errors
    return _rules_of(node).validate(complete).errors


@of_schema
def _rules_of(node: Structural) -> RuleValidator:
    return RuleValidator(node, root=node.embedded_resource)


@of_schema
def literals(node: Structural) -> tuple[str, ...]:
    """The texts in the rules of a node; for one that may be a pattern, a match."""
    found = [single or double for rule in node.rules for single, double in _LITERAL.findall(rule.rule)]
    matches = [sample(word.replace("\\\\", "\\")) for word in found if _SPECIAL.search(word)]
    return tuple(dict.fromkeys(word for word in (*matches, *found) if word))


@of_schema
def mentioned(node: Structural) -> list[str]:
    """The fields of a node that its rules may name; `namespace` is `__namespace__` in a rule."""
    names = [name.removeprefix("__").removesuffix("__") for rule in node.rules for name in _WORD.findall(rule.rule)]
    return [name for name in names if name in node.properties]


def _is_checked(node: Structural, above: Branches) -> bool:
    """Whether making a value within its limits may not be enough."""
    validation = node.validation
    junctors = validation.one_of or validation.any_of or validation.all_of or validation.not_ is not None
    return bool(node.rules or junctors or above or len(validation.pattern) > 0)
