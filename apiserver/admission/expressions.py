"""Expressions of admission, evaluated (upstream's pkg/admission/plugin/cel and webhook/matchconditions).

Expressions that are evaluated together share what they see, the variables that a policy composes, and a budget of cost.
A variable is evaluated when an expression first looks at it; one that nobody looks at may be as wrong as it likes.

Expressions run where they stand as long as that takes no time to speak of. One that takes longer, or that looks at a
large object, is run again from the beginning in the thread for heavy work: expressions have no side effects. So what
answers for `authorizer` may be called from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from time import thread_time
from typing import Final, NamedTuple, TypeVar

from apiserver.api.types import Object
from apiserver.cel.admission import (
    AUTHORIZER,
    CONDITION,
    NAMESPACE,
    OBJECT,
    OLD_OBJECT,
    PARAMS,
    REQUEST,
    REQUEST_AUTHORIZER,
    VARIABLES,
    Composition,
    Expression,
    match_condition,
)
from apiserver.cel.errors import CelError, Interrupted, Patience
from apiserver.cel.library.authorization import Answer, Ask, Authorizer, resource_check
from apiserver.cel.slow import Outcome
from apiserver.cel.spending import PER_CALL_LIMIT
from apiserver.cel.values import LazyMap, Value, untyped
from apiserver.registry.heavy import LIGHT, work
from apiserver.registry.patience import Impatience, TakesLong

BUDGET: Final = 10_000_000
"""What the expressions of one kind may cost together, for each binding and param of a policy."""
BUDGET_OF_CONDITIONS: Final = BUDGET // 4
LONGEST: Final = 5.0
"""Seconds for an evaluation, beside what it may cost: upstream is faster, so that costs suffice."""
_NO_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"

_TOO_DEEP: Final = "the value is nested too deeply"

T = TypeVar("T")


def allow_all(_: Mapping[str, str]) -> Answer:
    """Everybody may do everything."""
    return Answer(allowed=True)


class Inputs(NamedTuple):
    """What expressions see, as JSON.

    `request` is an AdmissionRequest without uid and objects, and without what is empty; its `resource` may be the
    equivalent one that a rule has matched. `about` is what the request is about, for `authorizer.requestResource`:
    group, resource, subresource, namespace, name.
    """

    object: Object | None
    old_object: Object | None
    request: Object
    about: tuple[str, str, str, str, str] = ("", "", "", "", "")
    namespace: Object | None = None
    params: Object | None = None
    ask: Ask = allow_all


class OutOfBudget(Exception):
    """The expressions together cost too much; nothing more is evaluated."""


class Result(NamedTuple):
    """A value, or what went wrong."""

    value: Value
    error: str = ""


class Evaluation:
    """Evaluates expressions that see the same, one after the other."""

    def __init__(
        self,
        inputs: Inputs,
        composition: Composition | None = None,
        *,
        budget: int | None = None,
        patience: Patience | None = None,
        authorizer: bool = True,
    ) -> None:
        """Not `authorizer`: there is none, even if the expressions may name it."""
        self.budget = BUDGET if budget is None else budget
        self._patience = patience
        self._composed = 0  # what variables have cost, that nobody was charged for
        known: dict[str, Value] = {
            OBJECT: untyped(inputs.object),
            OLD_OBJECT: untyped(inputs.old_object),
            REQUEST: untyped(inputs.request),
            NAMESPACE: untyped(inputs.namespace),
            PARAMS: untyped(inputs.params),
        }
        if authorizer:
            known[AUTHORIZER] = Authorizer(inputs.ask)
            known[REQUEST_AUTHORIZER] = resource_check(inputs.ask, *inputs.about)
        if composition is not None:
            compiled = composition.compiled.items()
            known[VARIABLES] = LazyMap({name: partial(self._variable, name, one) for name, one in compiled})
        self._known = known

    def run(self, expression: Expression) -> Result:
        """Raises OutOfBudget, and TakesLong if there is an end to patience."""
        if expression.program is None:
            return Result(None, f"compilation error: {expression.error}")
        outcome = self._evaluate(expression)
        for cost in (self._composed, outcome.cost):
            if cost > self.budget:
                raise OutOfBudget(_NO_BUDGET)
            self.budget -= cost
        self._composed = 0
        if outcome.error is not None:
            return Result(None, f"expression '{expression.text}' resulted in error: {outcome.error}")
        return Result(outcome.value)

    def _variable(self, name: str, expression: Expression) -> Value:
        if expression.program is None:
            raise CelError(f'composited variable "{name}" fails to compile: {expression.error}')
        outcome = self._evaluate(expression)
        self._composed += outcome.cost
        if outcome.error is not None:
            raise CelError(f'composited variable "{name}" fails to evaluate: {outcome.error}')
        return outcome.value

    def _evaluate(self, expression: Expression) -> Outcome:
        assert expression.program is not None
        try:
            return expression.program.evaluate(self._known, PER_CALL_LIMIT, self._patience)
        except RecursionError:  # a value as deep as clients like, as text
            return Outcome(None, _TOO_DEEP, PER_CALL_LIMIT)


class Deadline:
    """For the thread: how long all expressions may take that are evaluated together. Made where they are."""

    def __init__(self) -> None:
        self._end = thread_time() + LONGEST

    def begin(self) -> None:
        """Each expression takes of the same time."""

    def check(self, ahead: int = 0) -> None:
        if thread_time() > self._end:
            raise Interrupted

    def rest(self) -> None:
        """There is time enough."""


async def patiently(weight: int, evaluate: Callable[[Patience | None], T]) -> T:
    """Evaluate here if that is quickly done, in the thread for heavy work if not. `weight`: bytes that are looked at."""
    if weight <= LIGHT:
        try:
            return evaluate(Impatience())
        except TakesLong:
            pass
    return await work(max(weight, LIGHT + 1), lambda: evaluate(Deadline()))


class ConditionError(Exception):
    """Whether the conditions are met cannot be said."""


class MatchConditions:
    """The match conditions of a webhook or policy, compiled."""

    def __init__(self, conditions: Iterable[Object], composition: Composition | None = None) -> None:
        self._composition = composition
        self._expressions: Sequence[Expression] = [
            match_condition(one["expression"])
            if composition is None
            else composition.expression(one["expression"], CONDITION)
            for one in conditions
        ]

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._expressions)

    async def met(self, inputs: Inputs, weight: int, *, fail: bool) -> bool:
        """Whether all are true. One that is false decides, even if others cannot be evaluated.

        If none is false and some fail: raises ConditionError if the policy is to `fail`, else they are not met.
        """
        return await patiently(weight, lambda patience: self.met_within(patience, inputs, fail=fail))

    def met_within(self, patience: Patience | None, inputs: Inputs, *, fail: bool) -> bool:
        """`met`, as part of an evaluation. Raises ConditionError and TakesLong."""
        evaluation = Evaluation(inputs, self._composition, budget=BUDGET_OF_CONDITIONS, patience=patience)
        try:
            results = [evaluation.run(one) for one in self._expressions]
        except OutOfBudget as error:
            results = []
            errors = [str(error)]
        else:
            errors = list(dict.fromkeys(one.error for one in results if one.error))
        if any(one.value is False for one in results):
            return False
        if errors and fail:
            raise ConditionError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
        return not errors
