"""What a clean object costs: `python -m benchmarks.pipeline`.

From its bytes to being pruned, defaulted and validated, as the fast path does it and as the walkers do; and how long
the first object takes, for which the fast path is compiled. Processor time, best of several
interleaved rounds, loading included.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from apiserver.api import codec
from apiserver.api.types import Object
from apiserver.schema import embedded, listtype
from apiserver.schema.compiled import Compiled
from apiserver.schema.defaulting import default, drop_nulls
from apiserver.schema.pruning import prune
from apiserver.schema.structural import Structural, parse
from apiserver.schema.validation import validate
from benchmarks.samples import cases

ROUNDS = 100
RUNS = 20
BAR = 20.0  # µs for a clean object of 2 KB


def walk(value: Object, schema: Structural) -> bool:
    """What the walkers do with an object; whether it is clean."""
    removed = prune(value, schema, root=True)
    drop_nulls(value, schema)
    removed += embedded.coerce(value, schema, drop_malformed=False)
    default(value, schema)
    errors = validate(value, schema) + embedded.validate(value, schema) + listtype.validate(value, schema)
    return not removed and not errors


def microseconds(run: Callable[[], object], runs: int = RUNS) -> float:
    start = time.thread_time_ns()
    for _ in range(runs):
        run()
    return (time.thread_time_ns() - start) / runs / 1e3


def main() -> None:
    print(f"{'µs':<28} {'bytes':>6} {'load':>7} {'fast':>7} {'walked':>7} {'ratio':>6} {'first':>8}   bar {BAR:.0f}")
    for name, raw, body in cases():
        schema = parse(raw)
        fast = Compiled(schema, warm_up=0)

        def accept(fast: Compiled = fast, body: bytes = body) -> bool:
            return fast.accepts(value := codec.decode_stored(body)) and fast.is_complete(value)

        def explain(schema: Structural = schema, body: bytes = body) -> bool:
            return walk(codec.decode_stored(body), schema)

        first = microseconds(accept, 1)
        assert accept(), f"the sample of {name} is not accepted"
        assert explain(), f"the sample of {name} is not clean"
        runs = [
            (
                microseconds(lambda body=body: codec.decode_stored(body)),  # type: ignore[misc]
                microseconds(accept),
                microseconds(explain),
            )
            for _ in range(ROUNDS)
        ]
        load, quick, slow = map(min, zip(*runs, strict=True))
        print(f"{name:<28} {len(body):>6} {load:>7.1f} {quick:>7.1f} {slow:>7.1f} {slow / quick:>6.1f} {first:>8.0f}")


if __name__ == "__main__":
    main()
