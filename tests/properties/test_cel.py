"""Laws of CEL: generated rules give the results of the interpreter, and the core of the language agrees with cel-cpp."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

from hypothesis import assume, event, example, given
from hypothesis import strategies as st

from noxu.cel.checking.environment import KUBERNETES
from noxu.cel.cost.runtime import PER_CALL_LIMIT
from noxu.cel.errors import CostExceeded
from noxu.cel.generation.codegen import FALLBACK_ERRORS
from noxu.cel.kubernetes import rules
from noxu.cel.program import InstantiationError, Program
from noxu.cel.syntax.ast import CompileError
from noxu.cel.types.schema_types import decl_type
from noxu.cel.values.times import Duration
from noxu.cel.values.values import LISTS, from_json_or_failed
from noxu.schema.structural import parse
from noxu.values import Object
from tests.optional import require_package
from tests.properties.expressions import SCHEMA, expressions, objects
from tests.rows import rows

STRUCTURAL = parse(SCHEMA)
DECLARED = decl_type(STRUCTURAL)


def program_of(text: str) -> Program | None:
    assert DECLARED is not None
    return rules.expression(text, DECLARED).program


@given(expressions(), objects, objects)
@example("self.numbers.all(x, x in self.numbers)", {"numbers": [1, True]}, {})
@example("self.names[-1] == 'a'", {"names": ["a"]}, {})
@example("self.n == self.n", {"n": math.nan}, {})
@example("self.numbers.exists(x, 10 / x > 1)", {"numbers": [0, 1]}, {})
@example("self.labels.all(k, self.labels[k] == 'b')", {"labels": {"a": None}}, {})
def test_a_generated_rule_gives_the_result_of_the_interpreter(rule: str, new: Object, old: Object) -> None:
    program = program_of(rule)
    assume(program is not None)
    assert program is not None
    generated = program.generate(STRUCTURAL, old_self=True)
    assume(generated is not None)
    assert generated is not None
    try:
        result = generated(new, old, PER_CALL_LIMIT, refuse)
    except (*FALLBACK_ERRORS, CostExceeded):
        event("undecided")
        return
    event("decided")
    variables = {"self": from_json_or_failed(new, STRUCTURAL), "oldSelf": from_json_or_failed(old, STRUCTURAL)}
    value, error, cost = program.evaluate(variables)
    assert error is None, error
    assert result == (cost if value else ~cost)


def refuse(cost: int) -> int:
    raise CostExceeded


ORDINARY = [
    "self.i > 0 && self.i < 10",
    "!has(self.s) || self.s.size() < 5",
    "self.s.matches('^[a-z]+$')",
    "self.s in ['a', 'b']",
    "self.items.all(x, x.weight >= 0 && x.name.startsWith('a'))",
    "self.items.exists_one(x, x.name == 'a')",
    "self.items.filter(x, has(x.weight)).map(x, x.name).size() < 3",
    "self.labels.all(k, self.labels[k] != '')",
    "self.port == 80 || self.port == 'http'",
    "self.i >= oldSelf.i",
    "self.set.all(x, x in oldSelf.set)",
    "(has(self.s) ? self.s.size() : 0) + self.numbers.size() <= 4",
    "self.time > timestamp('2024-01-01T00:00:00Z')",
]


@rows("rule", ORDINARY)
def test_ordinary_rules_are_generated(rule: str) -> None:
    program = program_of(rule)
    assert program is not None
    assert program.generate(STRUCTURAL, old_self=True) is not None


# -- the core of the language, compared with Google's engine in C++ --------------------------------------------------

CORE: dict[str, Any] = {
    "i": 3, "j": -7, "s": "hello", "t": "é☃", "b": True, "n": 2.5, "port": 80,
    "names": ["a", "ab", ""], "numbers": [1, 0, 3], "set": ["a", "b"], "labels": {"a": "ab", "b": ""},
    "o": {"x": 1, "a-b": "y"}, "items": [{"name": "a", "weight": 2}],
}  # fmt: skip
THEIRS: dict[str, Any] = {**CORE, "o": {"x": 1, "a__dash__b": "y"}}
MOMENT = "timestamp('2024-02-29T12:30:45Z')"


@given(st.data())
def test_the_core_agrees_with_cel_cpp(data: st.DataObject) -> None:
    require_package("cel_expr_python")
    partner = import_module("cel_expr_python.cel")
    kind = data.draw(st.sampled_from(["bool", "int", "string", "double", "texts", "ints", "span"]))
    text = data.draw(expressions(kind, core=True)).replace("self.time", MOMENT).replace("self.set", "self.names")
    assume(" in []" not in text)  # upstream does not evaluate the left side then
    assert DECLARED is not None
    try:
        ours = Program(text, KUBERNETES.extend({"self": DECLARED.named("type")}))
        ours.instantiate()
        theirs = partner.NewEnv(variables={"self": partner.Type.DYN}).compile(text)
    except (CompileError, InstantiationError, RuntimeError):
        event("does not compile")  # the engines have different rules about constants and mixed types
        return
    event("compared")
    value, error, _ = ours.evaluate({"self": from_json_or_failed(CORE, STRUCTURAL)}, 10**9)
    assume(error != "NaN values cannot be ordered")  # there, they compare as false
    their_result = theirs.eval(data={"self": THEIRS})
    failed = their_result.type() == partner.Type.ERROR
    assert (error is not None) == failed, (value, error, their_result)
    assert failed or same(value, their_result.plain_value()), (value, their_result)


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, Duration):
        return abs(ours.seconds - theirs.total_seconds()) < 1e-6
    if isinstance(ours, LISTS):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, float) and math.isnan(ours):
        return math.isnan(theirs)
    return type(ours) is type(theirs) and ours == theirs
