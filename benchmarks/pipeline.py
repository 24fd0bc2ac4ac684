"""Measures valid objects from bytes to validated: `python -m benchmarks.pipeline`.

Compares the compiled fast path with the readable path (prune, default, validate), both including decoding. `first` is the
first object, for which the fast path is compiled. Prints processor times, the minimum of interleaved rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.samples import cases
from noxu.api import codec
from noxu.schema import embedded, listtype
from noxu.schema.compiled import Compiled
from noxu.schema.defaulting import default, drop_nulls
from noxu.schema.pruning import prune
from noxu.schema.structural import Structural, parse
from noxu.schema.validation import validate
from noxu.values import Object

ROUNDS = 100
RUNS = 20
TARGET = 20.0  # µs for a valid object of 2 KB


def take_readable_path(value: Object, schema: Structural) -> bool:
    """Prune, default and validate one after the other; return whether nothing was removed and nothing is invalid."""
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
    print(
        f"{'µs':<28} {'bytes':>6} {'decode':>7} {'fast':>7} {'readable':>8} {'ratio':>6} {'first':>8}   target {TARGET:.0f}"
    )
    for name, raw, body in cases():
        schema = parse(raw)
        fast = Compiled(schema, warm_up=0)

        def accept(fast: Compiled = fast, body: bytes = body) -> bool:
            value = codec.decode_stored(body)
            return fast.accepts(value) and (fast.is_complete is None or fast.is_complete(value))

        def accept_readably(schema: Structural = schema, body: bytes = body) -> bool:
            return take_readable_path(codec.decode_stored(body), schema)

        first = microseconds(accept, 1)
        assert accept(), f"the sample of {name} is not accepted"
        assert accept_readably(), f"the sample of {name} is not valid"
        runs = [
            (
                microseconds(lambda body=body: codec.decode_stored(body)),  # type: ignore[misc]
                microseconds(accept),
                microseconds(accept_readably),
            )
            for _ in range(ROUNDS)
        ]
        decode, compiled, readable = map(min, zip(*runs, strict=True))
        print(
            f"{name:<28} {len(body):>6} {decode:>7.1f} {compiled:>7.1f} {readable:>8.1f} {readable / compiled:>6.1f} {first:>8.0f}"
        )


if __name__ == "__main__":
    main()
