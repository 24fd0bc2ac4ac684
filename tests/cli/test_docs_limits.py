"""Limits that the documentation promises are those of the program.

The rows of docs/limits.md are exactly those of PAGE: the number in the second column, times its unit, is the value of a
constant. Each row of LIMITS is about another page: a document, a regular expression with one group, which must match once, a constant or a sum of constants of a
module, and a unit: the number in the group, times the unit, is the value of the constants.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from noxu.apiserver.cli import parser_of

DOCS: Final = Path(__file__).parents[2] / "docs"
KIB, MIB = 1024, 1024 * 1024
WORDS: Final = {
    "half": 0.5, "a": 1, "an": 1, "Twice": 0.5, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10, "fifteen": 15,
}  # fmt: skip

LIMITS: list[tuple[str, str, str, float]] = [
    ("admission.md", r"An answer has at most (\S+) MiB", "apiserver.webhook.client:MAX_ANSWER", MIB),
    (
        "admission.md",
        r"a patch at most (\S+ \d+) operations",
        "apiserver.api.patch_bodies:MAX_JSON_PATCH_OPERATIONS",
        1,
    ),
    ("admission.md", r"\(1 to (\d+), 10 unless given\)", "apiserver.admission.webhooks:_MAX_TIMEOUT", 1),
    ("cli.md", r"unpacked at most (\d+) MiB", "apiserver.charts:MAX_UNPACKED", MIB),
    ("apply.md", r"Beyond (\w+) updaters", "apiserver.apply.manager:MAX_UPDATE_MANAGERS", 1),
    (
        "cel.md",
        r"all rules of an object together have (\d+) ms",
        "apiserver.registry.cpu_budget:MAX_LOOP_SECONDS",
        0.001,
    ),
    ("cel.md", r"A rule that runs for more than (\w+) second", "apiserver.registry.cpu_budget:MAX_RULE_SECONDS", 1),
    ("cel.md", r"(\S+ 000 000) for a rule", "apiserver.cel.cost.runtime:PER_CALL_LIMIT", 1),
    ("cel.md", r"(\S+ 000 000) for an object", "apiserver.cel.kubernetes.validation:BUDGET", 1),
    ("cli.md", r"The newest (\d+) are kept", "apiserver.http.traces:MAX_TRACES", 1),
    ("cli.md", r"says why \(the first (\w+) errors\)", "apiserver.controllers.invalid_objects:MAX_ERRORS", 1),
    ("cli.md", r"the port to listen on \(default: (\d+)\)", "apiserver.config:DEFAULT_PORT", 1),
    ("conversion.md", r"reviews of up to (\d+) objects", "apiserver.registry.conversion.entries:MAX_OBJECTS", 1),
    ("conversion.md", r"objects or (\d+) MiB", "apiserver.registry.conversion.entries:MAX_BYTES", MIB),
    ("conversion.md", r"MiB, (\w+) at a time", "apiserver.registry.conversion.entries:CONCURRENCY", 1),
    ("conversion.md", r"\*\*Limits\*\*: (\d+) seconds a review", "apiserver.registry.conversion.converters:TIMEOUT", 1),
    ("conversion.md", r"(\d+) MiB an answer", "apiserver.webhook.client:MAX_ANSWER", MIB),
    ("deviations.md", r"it gets up to (\d+) objects", "apiserver.registry.conversion.entries:MAX_OBJECTS", 1),
    ("deviations.md", r"beyond (\d+) errors or", "apiserver.api.errors:MAX_REPORTED_ERRORS", 1),
    ("deviations.md", r"or (\d+) Ki characters the answer counts", "apiserver.api.errors:MAX_REPORTED_TEXT", KIB),
    ("deviations.md", r"a second of processor time, and (\d+) MiB of values", "apiserver.cel.memory:MAX_BYTES", MIB),
    ("deviations.md", r"YAML aliases expand to \| (\d+) MiB", "apiserver.go.yaml:MAX_ALIASED_TEXT", MIB),
    ("deviations.md", r"`%TAG` directives of a YAML document \| (\d+)", "apiserver.go.yaml:MAX_TAG_DIRECTIVES", 1),
    ("deviations.md", r"depth × events ≤ (\d+) million", "apiserver.go.yaml:MAX_FLOW_WORK", 1_000_000),
    ("deviations.md", r"binding and param \| (\d+) s of CPU", "apiserver.admission.expressions:LONGEST", 1),
    ("deviations.md", r"collected for one object \| (\d+ \d+), and", "apiserver.schema.validation:MAX_FOUND", 1),
    ("deviations.md", r"and (\d+) MiB of paths", "apiserver.schema.validation:MAX_FOUND_TEXT", MIB),
    ("deviations.md", r"defaults add to an object \| (\S+ \S+ \d+) bytes", "apiserver.schema.defaulting:MAX_ADDED", 1),
    ("deviations.md", r"together (\S+ 000) instructions", "apiserver.crd.validation:MAX_PATTERN_SIZE", 1),
    ("deviations.md", r"request in a thread \| (\d+) s", "apiserver.registry.cpu_budget:MAX_THREAD_SECONDS", 1),
    ("deviations.md", r"structs \(nested schemas of a CRD\) \| (\d+) levels", "apiserver.go.structs:MAX_DEPTH", 1),
    ("deviations.md", r"a CEL rule \| (\w+) second", "apiserver.registry.cpu_budget:MAX_RULE_SECONDS", 1),
    ("deviations.md", r"YAML \| (\w+) mebibyte of indentation", "apiserver.api.codec:MAX_INDENTATION", MIB),
    ("deviations.md", r"indentation, and (\d+) times", "apiserver.api.codec:INDENTATION_RATIO", 1),
    ("deviations.md", r"a selector \| (\d+) Ki characters", "apiserver.api.selectors:MAX_LENGTH", KIB),
    ("deviations.md", r"a pattern \| (\d+) Ki characters", "apiserver.schema.patterns:MAX_LENGTH", KIB),
    ("deviations.md", r"a webhook's answer \| (\d+) MiB", "apiserver.webhook.client:MAX_ANSWER", MIB),
    (
        "deviations.md",
        r"webhook's patch \| (\S+ \d+) operations",
        "apiserver.api.patch_bodies:MAX_JSON_PATCH_OPERATIONS",
        1,
    ),
    ("deviations.md", r"disconnected after (\d+) s without", "apiserver.http.connection:SEND_DEADLINE", 1),
    ("deviations.md", r"not read take at most (\d+) MiB", "apiserver.http.unsent:MAX_UNSENT", MIB),
    ("deviations.md", r"for longest, at least (\d+) s", "apiserver.http.unsent:MIN_STALLED", 1),
    ("deviations.md", r"open watches \| (\S+ \d+), and", "apiserver.http.watch_quota:MAX_WATCHES", 1),
    ("deviations.md", r"and (\d+) MiB for their selectors", "apiserver.http.watch_quota:MAX_MEMORY", MIB),
    ("policies.md", r"An expression may cost (\S+), all", "apiserver.cel.cost.runtime:PER_CALL_LIMIT", 1),
    ("policies.md", r"binding and param (\S+) together", "apiserver.admission.expressions:BUDGET", 1),
    ("policies.md", r"ends after (\w+) seconds with", "apiserver.admission.expressions:LONGEST", 1),
    ("reliability.md", r"SIGTERM: within (\d+) s", "apiserver.server:STOP_WITHIN", 1),
    ("reliability.md", r"closed (\d+) s after they stop", "apiserver.http.watch:STALLED_AFTER", 1),
    ("storage.md", r"while (\S+ \d+) writes or", "storage.group_commit:MAX_PENDING_WRITES", 1),
    ("storage.md", r"writes or (\d+) MiB are queued", "storage.group_commit:MAX_PENDING_BYTES", MIB),
    ("storage.md", r"Every (\w+) minutes the server", "apiserver.server:COMPACT_EVERY", 60),
    ("storage.md", r"It goes through (\d+) revisions at a time", "storage.sqlite:SWEEP_SPAN", 1),
    ("storage.md", r"less than (\S+ \d+) events and", "storage.log:TAIL_EVENTS", 1),
    ("storage.md", r"events and (\d+) MiB behind", "storage.log:TAIL_BYTES", MIB),
    ("storage.md", r"(\w+) a second the server tries", "storage.sqlite:RETRY_INTERVAL", 1),
    ("storage.md", r"`application_id` (0x\w+)", "storage.migrations:APPLICATION_ID", 1),
    ("threat-model.md", r"closed after (\d+) s, without an answer", "apiserver.http.connection:HEAD_DEADLINE", 1),
    ("threat-model.md", r"a body after (\d+) s: 504", "apiserver.http.body:BODY_DEADLINE", 1),
    ("threat-model.md", r"idle: (\d+) s", "apiserver.http.connection:IDLE_DEADLINE", 1),
    ("threat-model.md", r"a head of more than (\w+) megabyte", "apiserver.http.connection:MAX_HEAD", MIB),
    ("threat-model.md", r"more than (\d+) reads or", "apiserver.config:MAX_IN_FLIGHT", 1),
    ("threat-model.md", r"reads or (\d+) writes at once", "apiserver.config:MAX_MUTATING_IN_FLIGHT", 1),
    ("threat-model.md", r"at most (\d+) KiB of warnings", "apiserver.http.negotiation:MAX_WARNING_RUNES", KIB),
    ("threat-model.md", r"bodies over (\d+) MiB", "apiserver.api.codec:MAX_BODY", MIB),
    ("threat-model.md", r"would not take: (\S+) MiB", "apiserver.registry.limits:MAX_REQUEST", MIB),
    ("threat-model.md", r"beyond (\d+) levels 400", "apiserver.go.structs:MAX_DEPTH", 1),
    ("threat-model.md", r"selectors of (\d+) Ki characters", "apiserver.api.selectors:MAX_LENGTH", KIB),
    ("threat-model.md", r"disconnected after (\d+) s without", "apiserver.http.connection:SEND_DEADLINE", 1),
    ("threat-model.md", r"read nothing for (\w+) second", "apiserver.http.unsent:MIN_STALLED", 1),
    ("threat-model.md", r"leaves at most (\d+) KiB in the", "apiserver.http.sending:PIECE", KIB),
    ("threat-model.md", r"buffer and (\d+) KiB in the kernel", "apiserver.http.connection:KERNEL_UNSENT", KIB),
    ("threat-model.md", r"at most (\d+) MiB in total", "apiserver.http.unsent:MAX_UNSENT", MIB),
    ("threat-model.md", r"429 beyond (\S+ \d+) watches", "apiserver.http.watch_quota:MAX_WATCHES", 1),
    ("threat-model.md", r"or (\d+) MiB of selectors", "apiserver.http.watch_quota:MAX_MEMORY", MIB),
    ("threat-model.md", r"until then at most (\d+) KiB each", "apiserver.http.watch:HIGH_WATER+CHUNK_BYTES", KIB),
    ("threat-model.md", r"cut off after (\d+) s; until then", "apiserver.http.watch:STALLED_AFTER", 1),
]

# -- docs/limits.md: the first column, and the constant
PAGE: Final = {
    "the body of a request": "apiserver.api.codec:MAX_BODY",
    "the head of a request": "apiserver.http.connection:MAX_HEAD",
    "header fields of a request": "apiserver.http.connection:MAX_HEADERS",
    "trailers of a body in chunks, or the extensions of a chunk": "apiserver.http.connection:MAX_TRAILER",
    "frames that a client sends at once on the WebSocket of a watch": "apiserver.http.connection:MAX_FRAMES",
    "bytes of a method": "apiserver.http.methods:MAX_METHOD",
    "levels of nesting in JSON": "apiserver.go.json:MAX_DEPTH",
    "operations of a JSON patch, also of a webhook's": "apiserver.api.patch_bodies:MAX_JSON_PATCH_OPERATIONS",
    "bytes that the `copy` operations of a JSON patch add": "apiserver.apply.patch:MAX_COPIED",
    "characters of a label or field selector": "apiserver.api.selectors:MAX_LENGTH",
    "characters of `Accept` or `Content-Type`": "apiserver.http.negotiation:MAX_NEGOTIATED",
    "parameters of a query": "apiserver.http.request:MAX_PARAMETERS",
    "characters of the parameter `timeout`": "apiserver.http.options:MAX_DURATION",
    "groups and values of extra of an impersonated user": "apiserver.security.impersonation:MAX_PARTS",
    "characters that YAML aliases expand to": "apiserver.go.yaml:MAX_ALIASED_TEXT",
    "`%TAG` directives of a YAML document": "apiserver.go.yaml:MAX_TAG_DIRECTIVES",
    "characters of the warnings of an answer": "apiserver.http.negotiation:MAX_WARNING_RUNES",
    "indentation of an answer (`?pretty=1`)": "apiserver.api.codec:MAX_INDENTATION",
    "unknown fields that a strict answer lists": "apiserver.go.structs:MAX_STRICT_ERRORS",
    "values that the printer columns of one object look at; 8 characters of a cell count as one": (
        "apiserver.tables.cell_budget:MAX_OF_ROW"
    ),
    "the same for all rows of an answer": "apiserver.tables.cell_budget:MAX_OF_REQUEST",
    "errors that an answer lists": "apiserver.api.errors:MAX_REPORTED_ERRORS",
    "characters of the errors of an answer": "apiserver.api.errors:MAX_REPORTED_TEXT",
    "an object as it is stored": "apiserver.registry.limits:MAX_REQUEST",
    "annotations of an object, keys and values": "apiserver.api.meta:MAX_ANNOTATIONS",
    "`data` of a ConfigMap or Secret": "apiserver.kinds.core:MAX_DATA",
    "field managers of updates in `managedFields`": "apiserver.apply.manager:MAX_UPDATE_MANAGERS",
    "bytes of the name of a field manager": "apiserver.api.meta:MAX_MANAGER",
    "characters that `generateName` contributes to a name": "apiserver.api.meta:MAX_GENERATED_BASE",
    "what defaults add to an object": "apiserver.schema.defaulting:MAX_ADDED",
    "the lifetime of an Event after its last write": "apiserver.config:DEFAULT_EVENT_TTL",
    "invalid fields that are collected for an object": "apiserver.schema.validation:MAX_FOUND",
    "errors of CEL rules for an object": "apiserver.cel.kubernetes.validation:MAX_FAILURES",
    "nested schemas of a definition": "apiserver.go.structs:MAX_DEPTH",
    "selectable fields of a version": "apiserver.crd.strictness:MAX_SELECTABLE_FIELDS",
    "characters of a pattern": "apiserver.schema.patterns:MAX_LENGTH",
    "instructions of all patterns of a definition": "apiserver.crd.validation:MAX_PATTERN_SIZE",
    "estimated cost of a CEL rule": "apiserver.cel.kubernetes.schema_rules:MAX_RULE_ESTIMATE",
    "estimated cost of all rules of a schema": "apiserver.cel.kubernetes.schema_rules:MAX_SCHEMA_ESTIMATE",
    "actual cost of one CEL rule or expression": "apiserver.cel.cost.runtime:PER_CALL_LIMIT",
    "actual cost of all rules for an object": "apiserver.cel.kubernetes.validation:BUDGET",
    "actual cost of a policy, for one binding and param": "apiserver.admission.expressions:BUDGET",
    "values that a CEL rule makes, or the expressions of a policy together for one binding and param": (
        "apiserver.cel.memory:MAX_BYTES"
    ),
    "values of the JSON patch or apply configuration of a policy": "apiserver.cel.memory:MAX_BYTES",
    "characters of the error of a CEL evaluation": "apiserver.cel.errors:MAX_MESSAGE",
    "processor time of a CEL rule": "apiserver.registry.cpu_budget:MAX_RULE_SECONDS",
    "processor time of a policy, for one binding and param": "apiserver.admission.expressions:LONGEST",
    "processor time of a request in a thread": "apiserver.registry.cpu_budget:MAX_THREAD_SECONDS",
    "requests that read, at the same time": "apiserver.config:MAX_IN_FLIGHT",
    "requests that write, at the same time": "apiserver.config:MAX_MUTATING_IN_FLIGHT",
    "requests of more than 256 KiB that are decoded at the same time": "apiserver.registry.offload:SLOTS",
    "bytes of smaller requests, from 16 KiB on, that are decoded at the same time": (
        "apiserver.registry.offload:MEDIUM_ROOM"
    ),
    "requests that compute in a thread, at the same time": "apiserver.registry.turns:THREADS",
    "processor time of a turn in a thread, if others wait": "apiserver.registry.turns:SLICE",
    "requests that have had a turn, and wait for another one": "apiserver.registry.turns:MAX_PARKED",
    "documents of OpenAPI that are kept": "apiserver.discovery.openapi:MAX_KEPT",
    "parts of `/openapi/v2` that are kept": "apiserver.discovery.openapi:MAX_PARTS",
    "open watches": "apiserver.http.watch_quota:MAX_WATCHES",
    "memory of the selectors of watches": "apiserver.http.watch_quota:MAX_MEMORY",
    "connections": "apiserver.http.open_connections:MAX_CONNECTIONS",
    "incomplete TLS handshakes": "apiserver.http.tls:MAX_HANDSHAKES",
    "requests that have not arrived completely, together": "apiserver.http.incoming:MAX_INCOMING",
    "answers that clients have not read, together": "apiserver.http.unsent:MAX_UNSENT",
    "writes that wait for the store": "storage.group_commit:MAX_PENDING_WRITES",
    "bytes of writes that wait for the store": "storage.group_commit:MAX_PENDING_BYTES",
    "lines of the audit log that wait to be written": "apiserver.observability.line_writer:MAX_WAITING",
    "a request that is no watch": "apiserver.config:REQUEST_TIMEOUT",
    "the shortest watch, if the client sets no duration (the longest is twice as long)": (
        "apiserver.config:MIN_REQUEST_TIMEOUT"
    ),
    "the head of a request to arrive": "apiserver.http.connection:HEAD_DEADLINE",
    "the body of a request to arrive": "apiserver.http.body:BODY_DEADLINE",
    "an idle connection": "apiserver.http.connection:IDLE_DEADLINE",
    "a client that reads nothing of its answer": "apiserver.http.connection:SEND_DEADLINE",
    "a watch that reads nothing, with events waiting": "apiserver.http.watch:STALLED_AFTER",
    "a read that waits for a future `resourceVersion`": "apiserver.registry.reader:FRESHNESS_DEADLINE",
    "an admission webhook (`timeoutSeconds`)": "apiserver.admission.webhooks:_MAX_TIMEOUT",
    "a review of a conversion webhook": "apiserver.registry.conversion.converters:TIMEOUT",
    "requests in flight when the server stops": "apiserver.server:STOP_WITHIN",
    "an event loop that does not react to the signal that stops the server": "apiserver.signals:STUCK_FOR",
    "the period of compaction, after which history may be gone": "apiserver.server:COMPACT_EVERY",
    "attempts at a write while others change the object": "apiserver.registry.persistence:MAX_ATTEMPTS",
    "names that are generated for an object": "apiserver.registry.write:GENERATE_NAME_ATTEMPTS",
    "attempts at an eviction while others change the Pod": "apiserver.registry.subresources.eviction:ATTEMPTS",
    "attempts at converting a change together with others that fail": (
        "apiserver.registry.conversion.changes:MAX_ATTEMPTS"
    ),
    "the pause of a controller before it attempts a key again": "apiserver.controllers.queue:LONGEST_DELAY",
    "the answer of a webhook": "apiserver.webhook.client:MAX_ANSWER",
    "objects of a conversion review": "apiserver.registry.conversion.entries:MAX_OBJECTS",
    "bytes of the objects of a conversion review": "apiserver.registry.conversion.entries:MAX_BYTES",
    "conversion reviews of a list at the same time": "apiserver.registry.conversion.entries:CONCURRENCY",
    "events that a running watch may be behind, whatever is compacted": "storage.log:TAIL_EVENTS",
    "bytes of those events": "storage.log:TAIL_BYTES",
    "writes under way to etcd": "storage.etcd_writes:MAX_WRITES",
    "the time in which a read or a write waits for an etcd that does not answer": "storage.etcd_writes:RESOLVE_WITHIN",
}
UNITS: Final = {
    "": 1, "ms": 0.001, "s": 1, "min": 60, "million": 1_000_000, "Ki": KIB, "KiB": KIB, "Mi": MIB, "MiB": MIB,
}  # fmt: skip
_ROW: Final = re.compile(r"^\| (?!limit )(\S.*?) \| ([\d .]*\d) ?(\w*) \| .+? \| (\w+) \| (.*?) ?\|$", re.MULTILINE)


class Row(NamedTuple):
    """A row of docs/limits.md: the value with its unit, whether the reference has the limit, too, and the option."""

    limit: str
    value: str
    unit: str
    origin: str
    setting: str


ROWS: Final = [Row(*found) for found in _ROW.findall((DOCS / "limits.md").read_text())]


def number(text: str) -> float:
    """`10 000`, `1,000,000`, `1.5`, `0x6e6f7875`, `five`."""
    if text in WORDS:
        return WORDS[text]
    return int(text, 16) if text.startswith("0x") else float(re.sub(r"[ ,]", "", text))


@pytest.mark.parametrize(
    ("document", "pattern", "constant", "unit"), LIMITS, ids=[f"{row[0]}: {row[2]}" for row in LIMITS]
)
def test_a_documented_limit_is_that_of_the_program(document: str, pattern: str, constant: str, unit: float) -> None:
    text = " ".join((DOCS / document).read_text().split())  # wherever lines break
    [found] = re.findall(pattern, text)
    module, _, names = constant.partition(":")
    value = sum(getattr(import_module(f"noxu.{module}"), name) for name in names.split("+"))
    assert number(found) * unit == pytest.approx(value)


def test_the_page_of_limits_has_exactly_these() -> None:
    lines = (DOCS / "limits.md").read_text().splitlines()
    tables = [line for line in lines if line.startswith("|") and not line.startswith(("| limit ", "|---"))]
    assert len(ROWS) == len(tables)
    assert [row.limit for row in ROWS] == list(PAGE)
    assert {row.origin for row in ROWS} == {"reference", "Noxu"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.limit)
def test_a_limit_of_the_page_is_that_of_the_program(row: Row) -> None:
    module, _, name = PAGE[row.limit].partition(":")
    assert number(row.value) * UNITS[row.unit] == getattr(import_module(f"noxu.{module}"), name)


def test_the_settings_of_the_page_are_options() -> None:
    known = parser_of("serve")._option_string_actions
    options = [option for row in ROWS for option in re.findall(r"`(--[\w-]+)`", row.setting)]
    assert len(options) >= 5
    assert [option for option in options if option not in known] == []
