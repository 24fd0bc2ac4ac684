"""Measures CEL rules: `python -m benchmarks.cel`.

- Evaluation: one rule on one value, by generated code, by the interpreter and by the validator.
- Compilation: all rules of a CRD.
- Creation: an object with and without the rules of its CRD.

Prints processor times, the minimum of several rounds. The CRDs of the Gateway API are measured if the folder
`shared/crds` exists next to the checkout.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from noxu.cel.cost.runtime import PER_CALL_LIMIT
from noxu.cel.kubernetes import rules
from noxu.cel.kubernetes.schema_rules import SchemaRules
from noxu.cel.kubernetes.validation import RuleValidator
from noxu.cel.types.schema_types import decl_type
from noxu.cel.values.values import from_json_or_failed
from noxu.crd import types, update, validation
from noxu.crd.types import default
from noxu.registry import write
from noxu.registry.custom import versions_of
from noxu.registry.draft import Action, Body, WriteRequest, draft_for
from noxu.registry.write import arrive, decide
from noxu.schema.structural import Structural, parse
from noxu.values import Json, Object

ROUNDS = 7
CRDS = Path(__file__).parents[2] / "shared" / "crds"
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


def microseconds(run: Callable[[], object], *, at_least: float = 0.02) -> float:
    """Processor time per call. Repeats the call until a round takes `at_least` seconds."""
    count, elapsed = 1, 0.0
    while elapsed < at_least:
        count *= 2
        elapsed = timeit(run, count)
    return min(elapsed, *(timeit(run, count) for _ in range(ROUNDS))) / count * 1e6


def timeit(run: Callable[[], object], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        run()
    return time.process_time() - start


def evaluation_times() -> Iterator[str]:
    schema: Structural = parse(SCHEMA)
    declared = decl_type(schema)
    assert declared is not None
    variables = {"self": from_json_or_failed(VALUE, schema)}
    yield f"{'':26}{'generated':>12}{'interpreter':>12}{'validator':>12}   (µs)"
    for name, rule in RULES.items():
        program = rules.expression(rule, declared).program
        assert program is not None, rule
        generated = program.generate(schema, old_self=True)
        assert generated is not None, rule
        cost = program.evaluate(variables).cost
        assert generated(VALUE, None, PER_CALL_LIMIT, int) == cost, rule
        validator = RuleValidator(parse({**SCHEMA, "x-kubernetes-validations": [{"rule": rule}]}), root=False)
        for _ in range(10):
            assert not validator.validate(VALUE).errors
        times = (
            microseconds(lambda run=generated: run(VALUE, None, PER_CALL_LIMIT, int)),  # type: ignore[misc]
            microseconds(lambda run=program: run.evaluate(variables)),  # type: ignore[misc]
            microseconds(lambda run=validator: run.validate(VALUE)),  # type: ignore[misc]
        )
        yield f"{name:26}{times[0]:12.2f}{times[1]:12.1f}{times[2]:12.1f}   cost {cost}"


def synthetic_crd(count: int) -> Object:
    """A CRD with `count` rules, each on its own property."""
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


class TimedRules(SchemaRules):
    """Counts the rules and the processor time of compiling them."""

    seconds = 0.0
    count = 0

    def check(self, site):  # type: ignore[no-untyped-def]
        start = time.process_time()
        found = super().check(site)
        TimedRules.seconds += time.process_time() - start
        TimedRules.count += len(site.schema.rules)
        return found


def compile_time(crd: Object) -> tuple[int, float]:
    """The number of rules, and milliseconds to compile them with an empty cache."""
    decoded = types.decode(crd)
    prepared = update.prepare_for_create(default(decoded.value))
    fastest = float("inf")
    for _ in range(ROUNDS):
        rules.clear_cache()
        TimedRules.seconds, TimedRules.count = 0.0, 0
        assert not validation.validate(prepared, checkers=TimedRules)
        fastest = min(fastest, TimedRules.seconds)
    return TimedRules.count, fastest * 1000


def shared_document(folder: str, name: str) -> Object:
    """A document of `shared/crds`."""
    return yaml.load(gzip.decompress((CRDS / folder / f"{name}.yaml.gz").read_bytes()), Loader=yaml.CSafeLoader)  # type: ignore[no-any-return]


def compile_times() -> Iterator[str]:
    yield f"{'synthetic':40}{'{:4} rules{:8.1f} ms'.format(*compile_time(synthetic_crd(166)))}"
    total_count, total = 0, 0.0
    for file in sorted((CRDS / "crd").glob("*gateway.networking*")):
        count, milliseconds = compile_time(shared_document("crd", file.name.removesuffix(".yaml.gz")))
        total_count, total = total_count + count, total + milliseconds
    if total_count:
        yield f"{'all CRDs of the Gateway API':40}{total_count:4} rules{total:8.1f} ms"


def without_rules(node: Json) -> Json:
    if isinstance(node, list):
        return [without_rules(item) for item in node]
    if isinstance(node, dict):
        return {name: without_rules(item) for name, item in node.items() if name != "x-kubernetes-validations"}
    return node


STAGES = (
    arrive.read_body, arrive.decode, arrive.prune, arrive.refuse_unknown, arrive.check_url, arrive.default, decide.track_managers,
    decide.prepare, decide.validate,
)  # fmt: skip


async def creation_time(crd: Object, value: Object) -> float:
    """Microseconds of processor time for the stages of a creation, without HTTP and storage."""
    body = json.dumps(value).encode()
    crd["status"] = {"acceptedNames": crd["spec"]["names"]}
    resource = versions_of(crd, 0).storage
    request = WriteRequest(Action.CREATE, resource, "default", body=Body(body), weight=len(body))
    rounds = []
    for _ in range(ROUNDS * 3):
        start = time.process_time()
        for _ in range(20):
            draft = draft_for(request)
            draft.now = "2024-01-01T00:00:00Z"
            await write.run(draft, STAGES)
        rounds.append((time.process_time() - start) / 20)
    return min(rounds) * 1e6


def creation_times() -> Iterator[str]:
    for name in ("httproutes", "grpcroutes"):
        full = f"{name}.gateway.networking.k8s.io"
        if (CRDS / "crd" / f"{full}.yaml.gz").exists():
            crd, value = shared_document("crd", full), shared_document("cr", f"{full}--v1-1")
            value["metadata"] |= {"namespace": "default", "uid": "u", "creationTimestamp": "2024-01-01T00:00:00Z"}
            plain = asyncio.run(creation_time(without_rules(crd), value))
            ruled = asyncio.run(creation_time(crd, value))
            yield f"{name:26}{plain:8.0f} µs without rules{ruled:8.0f} µs with{ruled / plain:8.2f} times"


if __name__ == "__main__":
    print("Evaluation")
    for line in evaluation_times():
        print(" ", line)
    print("Compilation")
    for line in compile_times():
        print(" ", line)
    print("Creation")
    for line in creation_times():
        print(" ", line)
