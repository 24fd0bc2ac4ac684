"""How long CEL rules take: `python -m benchmarks.cel`.

Runs are of a rule on a value, by generated code and by the walker; compiling is of all the rules of a CRD. Times are
the best of several rounds. With real CRDs in a sibling folder `shared/crds`, those of the gateway API are compiled too, and
an object of two of them is created with and without rules.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from apiserver.api import codec
from apiserver.api.types import Json, Object
from apiserver.cel import rules
from apiserver.cel.schema_rules import SchemaRules
from apiserver.cel.schema_types import decl_type
from apiserver.cel.spending import PER_CALL_LIMIT
from apiserver.cel.validation import Validator
from apiserver.cel.values import from_json_or_failed
from apiserver.crd import types, update, validation
from apiserver.crd.defaults import default
from apiserver.registry import pipeline
from apiserver.registry.custom import versions_of
from apiserver.registry.pipeline import Draft
from apiserver.schema.structural import Structural, parse

ROUNDS = 7
CRDS = Path(__file__).parents[1].parent / "shared" / "crds"
NAME = {"type": "string", "maxLength": 63}
ITEM: Object = {"type": "object", "properties": {"name": NAME, "weight": {"type": "integer"}}}
SCHEMA: Object = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "limit": {"type": "integer"},
        "name": NAME,
        "port": {"x-kubernetes-int-or-string": True},
        "labels": {"type": "object", "additionalProperties": NAME, "maxProperties": 100},
        "items": {"type": "array", "maxItems": 100, "items": ITEM},
    },
}
VALUE: Object = {
    "replicas": 3,
    "limit": 5,
    "name": "web-1",
    "port": 80,
    "labels": {f"label-{n}": "x" for n in range(10)},
    "items": [{"name": f"item-{n}", "weight": n} for n in range(100)],
}
RULES = {
    "a comparison": "self.replicas <= self.limit",
    "presence": "!has(self.name) || self.replicas > 0",
    "a pattern": "self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
    "int or string": "self.port == 80 || self.port == 'http'",
    "labels": "self.labels.all(k, k.startsWith('label-') && self.labels[k] == 'x')",
    "all() over 100 objects": "self.items.all(i, i.weight >= 0)",
    "all() over 100 names": "self.items.all(i, i.name.size() < 64 && i.name.startsWith('item'))",
    "filter and size": "self.items.filter(i, i.weight > 50).size() < 60",
    "unique names": "self.items.all(i, self.items.exists_one(j, i.name == j.name))",
}


def best(run: Callable[[], object], *, at_least: float = 0.02) -> float:
    """Microseconds of processor time a run."""
    count, spent = 1, 0.0
    while spent < at_least:
        count *= 2
        spent = timeit(run, count)
    return min(spent, *(timeit(run, count) for _ in range(ROUNDS))) / count * 1e6


def timeit(run: Callable[[], object], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        run()
    return time.process_time() - start


def run_times() -> Iterator[str]:
    schema: Structural = parse(SCHEMA)
    declared = decl_type(schema)
    assert declared is not None
    variables = {"self": from_json_or_failed(VALUE, schema)}
    yield f"{'':26}{'generated':>12}{'walker':>12}{'validator':>12}   (µs)"
    for name, rule in RULES.items():
        program = rules.expression(rule, declared).program
        assert program is not None, rule
        generated = program.generate(schema, old_self=True)
        assert generated is not None, rule
        cost = program.evaluate(variables).cost
        assert generated(VALUE, None, PER_CALL_LIMIT, int) == cost, rule
        validator = Validator(parse({**SCHEMA, "x-kubernetes-validations": [{"rule": rule}]}), root=False)
        for _ in range(10):
            assert not validator.validate(VALUE).errors
        times = (
            best(lambda run=generated: run(VALUE, None, PER_CALL_LIMIT, int)),  # type: ignore[misc]
            best(lambda run=program: run.evaluate(variables)),  # type: ignore[misc]
            best(lambda run=validator: run.validate(VALUE)),  # type: ignore[misc]
        )
        yield f"{name:26}{times[0]:12.2f}{times[1]:12.1f}{times[2]:12.1f}   cost {cost}"


def made_up_crd(count: int) -> Object:
    """As many rules, on nodes of their own."""
    texts = list(RULES.values())[:-1]
    nodes = ({**SCHEMA["properties"], f"only{n}": NAME} for n in range(count))
    properties: Json = {
        f"p{n}": {"type": "object", "properties": node, "x-kubernetes-validations": [{"rule": texts[n % len(texts)]}]}
        for n, node in enumerate(nodes)
    }
    version = {
        "name": "v1", "served": True, "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }  # fmt: skip
    names = {"plural": "foos", "kind": "Foo"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]},
    }


class Timed(SchemaRules):
    """Counts the rules, and how long they take."""

    spent = 0.0
    count = 0

    def check(self, site):  # type: ignore[no-untyped-def]
        start = time.process_time()
        found = super().check(site)
        Timed.spent += time.process_time() - start
        Timed.count += len(site.schema.rules)
        return found


def compile_time(crd: Object) -> tuple[int, float]:
    """How many rules, and milliseconds with nothing remembered."""
    decoded = types.decode(crd)
    prepared = update.prepare_for_create(default(decoded.value))
    fastest = float("inf")
    for _ in range(ROUNDS):
        rules.forget()
        Timed.spent, Timed.count = 0.0, 0
        assert not validation.validate(prepared, checkers=Timed)
        fastest = min(fastest, Timed.spent)
    return Timed.count, fastest * 1000


def real(folder: str, name: str) -> Object:
    """A document of the sibling folder `shared/crds`."""
    return yaml.load(gzip.decompress((CRDS / folder / f"{name}.yaml.gz").read_bytes()), Loader=yaml.CSafeLoader)  # type: ignore[no-any-return]


def compile_times() -> Iterator[str]:
    yield f"{'made up':40}{'{:4} rules{:8.1f} ms'.format(*compile_time(made_up_crd(166)))}"
    total_count, total = 0, 0.0
    for file in sorted((CRDS / "crd").glob("*gateway.networking*")):
        count, spent = compile_time(real("crd", file.name.removesuffix(".yaml.gz")))
        total_count, total = total_count + count, total + spent
    if total_count:
        yield f"{'all CRDs of the gateway API':40}{total_count:4} rules{total:8.1f} ms"


def without_rules(node: Json) -> Json:
    if isinstance(node, list):
        return [without_rules(one) for one in node]
    if isinstance(node, dict):
        return {name: without_rules(one) for name, one in node.items() if name != "x-kubernetes-validations"}
    return node


async def creation_time(crd: Object, value: Object) -> float:
    """Microseconds to send an object through the stages of a creation (no HTTP, no storage)."""
    given = json.dumps(value).encode()
    crd["status"] = {"acceptedNames": crd["spec"]["names"]}
    resource = versions_of(crd, 0).storage
    stages = tuple(stage for stage in pipeline.WRITE_STAGES if stage is not pipeline.identify)
    rounds = []
    for _ in range(ROUNDS * 3):
        start = time.process_time()
        for _ in range(20):
            decoded = codec.read_object(given, "application/json", expected=None).value
            await pipeline.run(Draft(resource, "CREATE", decoded, weight=len(given), namespace="default"), stages)
        rounds.append((time.process_time() - start) / 20)
    return min(rounds) * 1e6


def creation_times() -> Iterator[str]:
    for name in ("httproutes", "grpcroutes"):
        full = f"{name}.gateway.networking.k8s.io"
        if (CRDS / "crd" / f"{full}.yaml.gz").exists():
            crd, value = real("crd", full), real("cr", f"{full}--v1-1")
            value["metadata"] |= {"namespace": "default", "uid": "u", "creationTimestamp": "2024-01-01T00:00:00Z"}
            plain = asyncio.run(creation_time(without_rules(crd), value))
            ruled = asyncio.run(creation_time(crd, value))
            yield f"{name:26}{plain:8.0f} µs without rules{ruled:8.0f} µs with{ruled / plain:8.2f} times"


if __name__ == "__main__":
    print("Running")
    for line in run_times():
        print(" ", line)
    print("Compiling")
    for line in compile_times():
        print(" ", line)
    print("Creating")
    for line in creation_times():
        print(" ", line)
