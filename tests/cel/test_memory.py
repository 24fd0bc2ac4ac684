"""The bytes of values that an expression makes are limited, whatever it costs: interpreted and generated.

The limit is lowered to a quarter of a MiB, so that the rows are fast. Each row makes, prints or compares far more than that
at a low cost; without the limit, most would take gigabytes.
"""

from __future__ import annotations

import gc
import tracemalloc
from functools import lru_cache
from typing import Any

import pytest

from noxu.cel import memory
from noxu.cel.checking.environment import STORED
from noxu.cel.cost.runtime import PER_CALL_LIMIT
from noxu.cel.errors import MAX_MESSAGE, CelError, MemoryExceeded, shortened
from noxu.cel.evaluation.interpreter import EvaluationResult
from noxu.cel.kubernetes.admission import Composition, Purpose
from noxu.cel.kubernetes.patches import PatchError, apply_configuration, json_patch
from noxu.cel.kubernetes.rules import expression
from noxu.cel.kubernetes.validation import RuleValidator
from noxu.cel.library import patches
from noxu.cel.types.schema_types import decl_type
from noxu.cel.values.values import from_json, untyped
from noxu.schema.structural import parse
from tests.rows import rows
from tests.timing import cpu_seconds

LIMIT = 256 * 1024
SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "bytes": {"type": "string", "format": "byte"},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
        "keyed": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "integer"}}},
        },
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "integer"}}},
    },
}  # fmt: skip
VALUE: dict[str, Any] = {
    "text": "ab,1" * 500,
    "bytes": "QUJD" * 500,
    "numbers": list(range(500)),
    "set": list(range(500)),
    "keyed": [{"k": n} for n in range(500)],
    "map": {f"k{n}": n for n in range(500)},
    "any": {"b": [1] * 2000},
}


def grown(start: str, step: str, count: int) -> str:
    """A value that grows `count` times, each time to `step` of the one before, `_`."""
    return f"[{start}]" + "".join(f".map(a{n}, {step.replace('_', f'a{n}')})" for n in range(count)) + "[0]"


TWICE = "[_, _]"
SHARED = grown("[1]", TWICE, 25)  # prints as 2^25 numbers
SHARED_TEXTS = grown("['abcdef']", TWICE, 25)
SHARED_EMPTY = grown("[]", TWICE, 25)
SHARED_MAPS = grown("{'k': 1}", "{'a': _, 'b': _}", 25)
TEXT = "(self.text + self.text + self.text + self.text)"  # 8,000 characters


def repeated(what: str, count: int = 3_000) -> str:
    """A list of values: what one takes is far less than the limit."""
    return f"lists.range({count}).map(i, {what})"


ROWS: dict[str, tuple[str, str]] = {
    # what grows: (function or operator, expression)
    "a sum of lists": ("_+_", grown("[1]", "_ + _", 30)),
    "a sum of texts": ("_+_", grown("'ab'", "_ + _", 30)),
    "a sum of bytes": ("_+_", grown("b'ab'", "_ + _", 30)),
    "a sum of sets": ("_+_", repeated("self.set + self.set")),
    "a sum of keyed lists": ("_+_", repeated("self.keyed + self.keyed")),
    "a sum of lists of an object": ("_+_", repeated("self.numbers + self.numbers")),
    "an equality": ("_==_", f"{SHARED} == {SHARED}"),
    "an equality of texts": ("_==_", f"{SHARED_TEXTS} == {SHARED_TEXTS}"),
    "an equality of empty lists": ("_==_", f"{SHARED_EMPTY} == {SHARED_EMPTY}"),
    "an equality of maps": ("_==_", f"{SHARED_MAPS} == {SHARED_MAPS}"),
    "an equality of parts of an object": ("_==_", f"[{repeated('self.numbers')}].map(l, l == l)"),
    "an equality of preserved parts": ("_==_", f"[{repeated('self.any')}].map(l, l == l)"),
    "an equality of sums": ("_==_", f"[[[0]] + {repeated('self.numbers')}].map(l, l == l)"),
    "an equality of sets": ("_==_", repeated("self.set == self.set")),
    "an equality of keyed lists": ("_==_", repeated("self.keyed == self.keyed")),
    "a difference": ("_!=_", f"{SHARED} != {SHARED}"),
    "a member": ("@in", f"{SHARED} in [{SHARED}]"),
    "a long text in a list": ("@in", f"[{TEXT}].map(t, (t + 'x') in {repeated('t + string(1)', 30)})"),
    "an element": ("indexOf", f"[{SHARED}].indexOf({SHARED})"),
    "an element from the end": ("lastIndexOf", f"[{SHARED}].lastIndexOf({SHARED})"),
    "an element that is searched in empty lists": ("indexOf", f"{SHARED_EMPTY}.indexOf([])"),
    "a set in a set": ("sets.contains", f"sets.contains([{SHARED}], [{SHARED}])"),
    "equal sets": ("sets.equivalent", f"sets.equivalent([{SHARED}], [{SHARED}])"),
    "sets that intersect": ("sets.intersects", f"sets.intersects([{SHARED}], [{SHARED}])"),
    "distinct elements": ("distinct", f"[{SHARED}, {SHARED}].distinct()"),
    "a flattened list": ("flatten", f"dyn({SHARED}).flatten(30)"),
    "a flattened list of nothing": ("flatten", f"dyn({SHARED_EMPTY}).flatten(30)"),
    "a list that is flattened once": ("flatten", repeated("self.numbers") + ".flatten()"),
    "a range": ("lists.range", "lists.range(900000)"),
    "a reversed list": ("reverse", repeated("self.numbers.reverse()")),
    "a part of a list": ("slice", repeated("self.numbers.slice(1, 499)")),
    "a sorted list": ("sort", f"[{repeated('i', 100)}].map(l, {repeated('l.sort()', 45)})"),
    "a list that is sorted by keys": ("@sortByAssociatedKeys", repeated("[5, 3].sortBy(e, e)", 30_000)),
    "a sum of shared numbers": ("sum", f"dyn({SHARED}).sum()"),
    "a maximum": ("max", f"dyn({SHARED}).max()"),
    "a minimum": ("min", f"dyn({SHARED}).min()"),
    "whether a list is sorted": ("isSorted", f"dyn({SHARED}).isSorted()"),
    "a literal": ("[…]", repeated(f"[i, {', '.join(['1'] * 200)}]")),
    "a literal of a map": ("{…}", repeated(f"{{'i': i, {', '.join(f'{chr(39)}k{n}{chr(39)}: 1' for n in range(50))}}}")),
    "a replacement of nothing": ("replace", "self.text.replace('', self.text)"),
    "a replacement": ("replace", "self.text.replace('a', self.text)"),
    "few replacements": ("replace", repeated("self.text.replace('a', self.text, 1)")),
    "a shorter replacement": ("replace", repeated("self.text.replace('ab', 'c')")),
    "a joined text": ("join", repeated("self.text") + ".join()"),
    "a joined text with separators": ("join", repeated("''") + ".join(self.text)"),
    "a split text": ("split", repeated("self.text.split(',')")),
    "split characters": ("split", repeated("self.text.split('')")),
    "a split text in few parts": ("split", repeated("self.text.split(',', 2)")),
    "lower case": ("lowerAscii", repeated("self.text.lowerAscii()")),
    "upper case": ("upperAscii", repeated("self.text.upperAscii()")),
    "a trimmed text": ("trim", repeated("self.text.trim()")),
    "a part of a text": ("substring", repeated("self.text.substring(1)")),
    "a quoted text": ("strings.quote", repeated("strings.quote(self.text)")),
    "a formatted list": ("format", f"'%s'.format([{SHARED}])"),
    "a formatted list of texts": ("format", f"'%s'.format([{SHARED_TEXTS}])"),
    "a formatted list of empty lists": ("format", f"'%s'.format([{SHARED_EMPTY}])"),
    "a formatted map": ("format", f"'%s'.format([{SHARED_MAPS}])"),
    "a formatted part of an object": ("format", f"'%s'.format([{repeated('self.numbers')}])"),
    "a wide number": ("format", "'%.1000000e'.format([1.0])"),
    "many digits": ("format", repeated("'%.1000f%.1000f'.format([1.5, 2.5])")),
    "hexadecimal bytes": ("format", repeated("'%x'.format([self.text])")),
    "bytes of a text": ("bytes", repeated("bytes(self.text)")),
    "a text of bytes": ("string", f"[bytes(self.text)].map(b, {repeated('string(b)')})"),
    "bytes of a field": (".", repeated("self.bytes")),
    "a number that is read": ("int", f"[{TEXT}].map(t, {repeated('int(t) == 1')}.exists(x, x))"),
    "an unsigned number that is read": ("uint", f"[{TEXT}].map(t, {repeated('uint(t) == 1u || true')})"),
    "a double that is read": ("double", f"[{TEXT}].map(t, {repeated('double(t) == 1.0 || true')})"),
    "a duration that is read": ("duration", f"[{TEXT}].map(t, {repeated('duration(t) == duration(t) || true')})"),
    "a timestamp that is read": ("timestamp", f"[{TEXT}].map(t, {repeated('timestamp(t) == timestamp(t) || true')})"),
    "a time zone": ("getHours", f"[{TEXT}].map(t, {repeated('timestamp(0).getHours(t) == 1 || true')})"),
    "an offset": ("getHours", f"[{TEXT} + ':00'].map(t, {repeated('timestamp(0).getHours(t) == 1 || true')})"),
    "a match": ("find", repeated("self.text.find('a.*')")),
    "matches": ("findAll", repeated("self.text.findAll('.')", 30)),
    "empty matches": ("findAll", repeated("self.text.findAll('')", 30)),
    "a URL": ("url", repeated("url('http://h/' + self.text)", 300)),
    "a host": ("getHostname", f"[url('http://' + self.text.replace(',', '.') + ':80/')].map(u, {repeated('u.getHostname()')})"),
    "a port": ("getPort", f"[url('http://h:' + {TEXT}.replace('ab,', '1') + '/')].map(u, {repeated('u.getPort()')})"),
    "a path": ("getEscapedPath", f"[url('http://h/' + self.text)].map(u, {repeated('u.getEscapedPath()')})"),
    "a query": ("getQuery", f"[url('http://h/?' + self.text.replace(',', '&'))].map(u, {repeated('u.getQuery()')})"),
    "an equality of URLs": ("_==_", f"[url('http://h/' + self.text)].map(u, {repeated('u == u')})"),
    "a sum of quantities": ("add", repeated("quantity('1e99999').add(quantity('1'))")),
    "a difference of quantities": ("sub", repeated("quantity('1e99999').sub(quantity('1'))")),
    "a comparison of quantities": ("compareTo", f"[quantity('1e99999').add(1)].map(q, {repeated('q.compareTo(q)')})"),
    "a larger quantity": ("isGreaterThan", f"[quantity('1e99999').add(1)].map(q, {repeated('q.isGreaterThan(q)')})"),
    "a smaller quantity": ("isLessThan", f"[quantity('1e99999').add(1)].map(q, {repeated('q.isLessThan(q)')})"),
    "a version": ("semver", repeated("semver('1.1.1-' + self.text.replace(',', '.').replace('1', 'x') + 'z')")),
    "a version that is checked": ("isSemver", repeated("isSemver('1.1.1-' + self.text.replace(',', '.'))")),
    "unwrapped optionals": ("optional.unwrap", f"[{repeated('optional.of(i)', 900)}].map(l, {repeated('optional.unwrap(l)')})"),
    "unwrapped options": ("unwrapOpt", f"[{repeated('optional.of(i)', 900)}].map(l, {repeated('l.unwrapOpt()')})"),
    "a map of pairs": ("cel.@mapInsert", "lists.range(20000).transformMap(i, v, v)"),
    "a map of entries": ("cel.@mapInsert", "lists.range(20000).transformMapEntry(i, v, {string(v): v})"),
    "a list of protobuf": ("messages", f"google.protobuf.ListValue{{values: {SHARED}}}"),
    "a value of protobuf": ("messages", f"google.protobuf.Value{{list_value: {SHARED}}}"),
    "a struct of protobuf": ("messages", f"google.protobuf.Struct{{fields: {SHARED_MAPS}}}"),
    "bytes of protobuf": ("messages", f"[bytes(self.text)].map(b, {repeated('google.protobuf.Value{list_value: [b]}', 300)})"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAX_BYTES", LIMIT)


@lru_cache(256)
def compiled(text: str) -> Any:
    declared = decl_type(parse(SCHEMA))
    assert declared is not None
    rule = expression(f"[{text}].size() == 1", declared, stored=True)
    assert rule.error == ""
    assert rule.program is not None
    return rule.program


def outcome(text: str) -> EvaluationResult:
    found: EvaluationResult = compiled(text).evaluate({"self": from_json(VALUE, parse(SCHEMA))})
    return found


def test_the_error_names_the_limit() -> None:
    assert MemoryExceeded(16 * 2**20).message == "operation cancelled: memory limit exceeded (16 MiB of values)"


@pytest.mark.slow
@rows("text", [row[1] for row in ROWS.values()], ids=ROWS)
def test_what_an_expression_makes_is_limited(text: str) -> None:
    program = compiled(text)
    variables = {"self": from_json(VALUE, parse(SCHEMA))}
    program.instantiate()
    tracemalloc.start()
    found = program.evaluate(variables)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.error or "").startswith(MemoryExceeded.PREFIX)
    assert found.cost < PER_CALL_LIMIT
    assert peak < 4 * LIMIT


def generated(text: str) -> Any:
    return compiled(text).generate(parse(SCHEMA), old_self=False)


NOT_GENERATED = {"a list that is sorted by keys", "a map of pairs", "a map of entries", "messages"}


@pytest.mark.slow
@rows("name", ROWS)
def test_what_a_generated_rule_makes_is_limited(name: str) -> None:
    function, text = ROWS[name]
    rule = generated(text)
    assert (rule is None) is bool(NOT_GENERATED & {name, function})
    if rule is not None:
        with pytest.raises((MemoryExceeded, CelError)):  # at an error the rule is interpreted
            rule(VALUE, None, PER_CALL_LIMIT, int)


SMALL = {
    # Their values are numbers, booleans, parts of their arguments, or short; what they read is in their costs.
    *("_?_:_", "_&&_", "_||_", "!_", "@not_strictly_false", "_/_", "_%_", "_*_", "_-_", "-_", "_<_", "_<=_", "_>_", "_>=_"),
    *("_[_]", "_[?_]", "_?._", "or", "orValue", "value", "hasValue", "first", "last", "optional.of", "optional.none"),
    *("optional.ofNonZeroValue", "size", "type", "dyn", "bool", "contains", "startsWith", "endsWith", "matches", "charAt"),
    *("getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek", "getMinutes", "getSeconds"),
    *("getMilliseconds", "isURL", "getScheme", "getHost", "quantity", "isQuantity", "sign", "asInteger", "isInteger"),
    *("asApproximateFloat", "ip", "isIP", "cidr", "isCIDR", "ip.isCanonical", "family", "isUnspecified", "isLoopback"),
    *("isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast", "containsIP", "containsCIDR", "masked"),
    *("prefixLength", "validate", "format.named", "major", "minor", "patch"),
    *("path", "group", "serviceAccount", "resource", "subresource", "namespace", "name", "check", "errored", "error"),
    *("allowed", "reason", "fieldSelector", "labelSelector"),
}  # fmt: skip


def test_every_function_is_in_the_table_or_makes_only_small_values() -> None:
    functions = {name for name in (*STORED.functions, *patches.FUNCTIONS) if not name.startswith("format.")}
    tested = {function for function, _ in ROWS.values()} | {"jsonpatch.escapeKey", "includes"}
    assert functions - tested - SMALL == set()


ENDLESS = [f"{prefix}('x' + {TEXT})" for prefix in ("isIP", "isCIDR", "isURL", "isQuantity", "ip.isCanonical")]


@pytest.mark.parametrize("text", ["self.text.lastIndexOf('1' + self.text)", *ENDLESS])
def test_reading_a_text_takes_time_in_proportion(text: str) -> None:
    program = compiled(text)
    variables = {"self": from_json({"text": "a" * 100_000}, parse(SCHEMA))}
    assert cpu_seconds(lambda: program.evaluate(variables)) < 0.5


def test_the_last_index_of_a_long_text_is_the_last() -> None:
    long = "ab" * 100
    text = f"[{grown('self.text', '_', 0)}].map(t, ('x{long}y{long}z').lastIndexOf('{long}'))[0] == 202"
    assert compiled(text).evaluate({"self": from_json(VALUE, parse(SCHEMA))}).value is True
    before = f"('x{long}y{long}z').lastIndexOf('{long}', 201) == 1 && ('x{long}').lastIndexOf('{long}z') == -1"
    assert outcome(f"{before} ? [1] : [2]").error is None


def test_a_rule_that_makes_too_much_is_an_error_and_the_last_rule() -> None:
    rules = [{"rule": f"{SHARED} == {SHARED}"}, {"rule": "false"}]
    validator = RuleValidator(parse({**SCHEMA, "x-kubernetes-validations": rules}), root=False)
    for _ in range(6):  # interpreted, then generated
        result = validator.validate(VALUE)
        (error,) = result.errors
        assert error.detail.startswith("operation cancelled: memory limit exceeded (0 MiB of values) evaluating rule: ")


def test_values_of_one_rule_do_not_count_for_the_next() -> None:
    rules = [{"rule": "self.numbers.reverse().size() > 0"}] * 20
    validator = RuleValidator(parse({**SCHEMA, "x-kubernetes-validations": rules}), root=False)
    for _ in range(6):
        assert validator.validate(VALUE).errors == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["[1, 2].exists(x, ip('x') == ip('::1'))", "self.numbers[9000] == 1 || self.numbers[-1] == 1"]
)
def test_an_error_leaves_no_cycles(text: str) -> None:
    assert outcome(text).error is not None
    gc.collect()
    gc.disable()
    try:
        assert outcome(text).error is not None
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_long_error_is_shortened() -> None:
    error = outcome(f"[{TEXT}].map(t, ip(t + t))").error or ""
    assert error.endswith("ab,1… (21850 more characters)")
    assert len(error) == MAX_MESSAGE + len("… (21850 more characters)")
    assert shortened("short") == "short"


# -- patches -----------------------------------------------------------------------------------------------------------

OBJECT = {"l": list(range(2000)), "s": "x" * 2000}
PATCHES = {
    "a list of itself": "[JSONPatch{op: 'add', path: '/a', value: object.l.map(x, object.l)}]",
    "a list that lists share": f"[JSONPatch{{op: 'add', path: '/a', value: {SHARED}}}]",
    "a map that maps share": f"[JSONPatch{{op: 'add', path: '/a', value: {SHARED_MAPS}}}]",
    "texts": "[JSONPatch{op: 'add', path: '/a', value: object.l.map(x, object.s)}]",
    "paths": "object.l.map(x, JSONPatch{op: 'add', path: object.s})",
    "keys": "object.l.map(x, JSONPatch{op: 'add', path: jsonpatch.escapeKey(object.s)})",
    "bytes": "[bytes(object.s)].map(b, [JSONPatch{op: 'add', path: '/a', value: object.l.map(x, b)}])[0]",
    "objects": "[JSONPatch{op: 'add', path: '/a', value: Object.spec{a: object.l.map(x, object.l)}}]",
}
CONFIGURATIONS = {
    "a list of itself": "Object{spec: object.l.map(x, object.l)}",
    "a list that lists share": f"Object{{spec: {SHARED}}}",
    "a map that maps share": f"Object{{spec: {SHARED_MAPS}}}",
    "texts": "Object{spec: object.l.map(x, object.s)}",
    "bytes": "[bytes(object.s)].map(b, Object{spec: object.l.map(x, b)})[0]",
    "objects that share objects": f"Object{{spec: {grown('Object.spec{}', 'Object.spec{a: [_, _]}', 5)}}}",
}


def written(text: str, purpose: Purpose) -> Any:
    made = Composition(params=False).expression(text, purpose)
    assert made.error == ""
    found = made.evaluate({"object": untyped(OBJECT)})
    if found.error is not None:
        return found.error
    write = json_patch if purpose is Purpose.JSON_PATCH else apply_configuration
    try:
        return write(found.value)
    except PatchError as error:
        return str(error)


@pytest.mark.parametrize("text", PATCHES.values(), ids=PATCHES)
def test_a_patch_is_limited(text: str) -> None:
    assert written(text, Purpose.JSON_PATCH).startswith(MemoryExceeded.PREFIX)


@pytest.mark.parametrize(
    "text", [text for name, text in CONFIGURATIONS.items() if name != "objects that share objects"]
)
def test_a_configuration_is_limited(text: str) -> None:
    assert written(text, Purpose.APPLY_CONFIGURATION).startswith(MemoryExceeded.PREFIX)


def test_a_patch_has_a_size() -> None:
    small = written("[JSONPatch{op: 'add', path: '/a', value: 1}]", Purpose.JSON_PATCH)
    large = written("[JSONPatch{op: 'add', path: '/a', value: object.s}]", Purpose.JSON_PATCH)
    assert 2000 < large.size - small.size < 3000
