"""Limits that the documentation promises are those of the program.

The rows of docs/limits.md are exactly those of PAGE: the number in the second column, times its unit, is the value of a
constant. Each row of LIMITS is about another page: a document, a regular expression with one group, which must match once, a constant or a sum of constants of a
module, and a unit: the number in the group, times the unit, is the value of the constants.
"""

from __future__ import annotations

import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from noxu.cli import parser_of
from tests.rows import rows

DOCS: Final = Path(__file__).parents[2] / "docs"
KIB, MIB = 1024, 1024 * 1024
WORDS: Final = {
    "half": 0.5, "a": 1, "an": 1, "Twice": 0.5, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10, "fifteen": 15,
}  # fmt: skip

LIMITS: list[tuple[str, str, str, float]] = [
    ("admission.md", r"An answer has at most (\S+) MiB", "noxu.webhook.client:MAX_ANSWER", MIB),
    (
        "admission.md",
        r"a patch at most (\S+ \d+) operations",
        "noxu.api.json_patches:MAX_JSON_PATCH_OPERATIONS",
        1,
    ),
    ("admission.md", r"\(1 to (\d+), 10 unless given\)", "noxu.admission.webhooks:_MAX_TIMEOUT", 1),
    ("cli.md", r"unpacked at most (\d+) MiB", "noxu.manifests.tool_files:MAX_UNPACKED", MIB),
    ("apply.md", r"Beyond (\w+) updaters", "noxu.apply.manager:MAX_UPDATE_MANAGERS", 1),
    (
        "cel.md",
        r"all rules of an object together have (\d+) ms",
        "noxu.registry.turns:MAX_LOOP_SECONDS",
        0.001,
    ),
    ("cel.md", r"A rule that runs for more than (\w+) second", "noxu.registry.turns:MAX_RULE_SECONDS", 1),
    ("cel.md", r"(\S+ 000 000) for a rule", "noxu.cel.cost.runtime:PER_CALL_LIMIT", 1),
    ("cel.md", r"(\S+ 000 000) for an object", "noxu.cel.kubernetes.validation:BUDGET", 1),
    ("cli.md", r"keep the processors busy, at most (\d+)\)", "noxu.exploration.learning:MOST_JOBS", 1),
    ("cli.md", r"The newest (\d+) are kept", "noxu.http.traces:MAX_TRACES", 1),
    ("cli.md", r"says why \(the first (\w+) errors\)", "noxu.controllers.invalid_objects:MAX_ERRORS", 1),
    ("cli.md", r"the port to listen on \(default: (\d+)\)", "noxu.config:DEFAULT_PORT", 1),
    ("conversion.md", r"reviews of up to (\d+) objects", "noxu.registry.conversion.converters:MAX_OBJECTS", 1),
    ("conversion.md", r"objects or (\d+) MiB", "noxu.registry.conversion.converters:MAX_BYTES", MIB),
    ("conversion.md", r"MiB, (\w+) at a time", "noxu.registry.conversion.converters:CONCURRENCY", 1),
    ("conversion.md", r"\*\*Limits\*\*: (\d+) seconds a review", "noxu.registry.conversion.converters:TIMEOUT", 1),
    ("conversion.md", r"(\d+) MiB an answer", "noxu.webhook.client:MAX_ANSWER", MIB),
    ("deviations.md", r"it gets up to (\d+) objects", "noxu.registry.conversion.converters:MAX_OBJECTS", 1),
    ("deviations.md", r"beyond (\d+) errors or", "noxu.api.errors:MAX_REPORTED_ERRORS", 1),
    ("deviations.md", r"or (\d+) Ki characters the answer counts", "noxu.api.errors:MAX_REPORTED_TEXT", KIB),
    ("deviations.md", r"a second of processor time, and (\d+) MiB of values", "noxu.cel.memory:MAX_BYTES", MIB),
    ("deviations.md", r"YAML aliases expand to \| (\d+) MiB", "noxu.go.yaml:MAX_ALIASED_TEXT", MIB),
    ("deviations.md", r"`%TAG` directives of a YAML document \| (\d+)", "noxu.go.yaml:MAX_TAG_DIRECTIVES", 1),
    ("deviations.md", r"depth × events ≤ (\d+) million", "noxu.go.yaml:MAX_FLOW_WORK", 1_000_000),
    ("deviations.md", r"binding and param \| (\d+) s of CPU", "noxu.admission.expressions:LONGEST", 1),
    ("deviations.md", r"collected for one object \| (\d+ \d+), and", "noxu.schema.validation:MAX_FOUND", 1),
    ("deviations.md", r"and (\d+) MiB of paths", "noxu.schema.validation:MAX_FOUND_TEXT", MIB),
    ("deviations.md", r"defaults add to an object \| (\S+ \S+ \d+) bytes", "noxu.schema.defaulting:MAX_ADDED", 1),
    ("deviations.md", r"together (\S+ 000) instructions", "noxu.crd.validation:MAX_PATTERN_SIZE", 1),
    ("deviations.md", r"request in a thread \| (\d+) s", "noxu.registry.turns:MAX_THREAD_SECONDS", 1),
    ("deviations.md", r"structs \(nested schemas of a CRD\) \| (\d+) levels", "noxu.go.structs:MAX_DEPTH", 1),
    ("deviations.md", r"a CEL rule \| (\w+) second", "noxu.registry.turns:MAX_RULE_SECONDS", 1),
    ("deviations.md", r"YAML \| (\w+) mebibyte of indentation", "noxu.api.codec:MAX_INDENTATION", MIB),
    ("deviations.md", r"indentation, and (\d+) times", "noxu.api.codec:INDENTATION_RATIO", 1),
    ("deviations.md", r"a selector \| (\d+) Ki characters", "noxu.api.selectors:MAX_LENGTH", KIB),
    ("deviations.md", r"a pattern \| (\d+) Ki characters", "noxu.schema.patterns:MAX_LENGTH", KIB),
    ("deviations.md", r"a webhook's answer \| (\d+) MiB", "noxu.webhook.client:MAX_ANSWER", MIB),
    (
        "deviations.md",
        r"webhook's patch \| (\S+ \d+) operations",
        "noxu.api.json_patches:MAX_JSON_PATCH_OPERATIONS",
        1,
    ),
    ("deviations.md", r"disconnected after (\d+) s without", "noxu.http.limits:Limits.send_deadline", 1),
    ("deviations.md", r"not read take at most (\d+) MiB", "noxu.http.limits:Limits.unsent", MIB),
    ("deviations.md", r"for longest, at least (\d+) s", "noxu.http.limits:Limits.min_stalled", 1),
    ("deviations.md", r"open watches \| (\S+ \d+), and", "noxu.http.watch_requests:MAX_WATCHES", 1),
    ("deviations.md", r"and (\d+) MiB for their selectors", "noxu.http.watch_requests:MAX_MEMORY", MIB),
    ("policies.md", r"An expression may cost (\S+), all", "noxu.cel.cost.runtime:PER_CALL_LIMIT", 1),
    ("policies.md", r"binding and param (\S+) together", "noxu.admission.expressions:BUDGET", 1),
    ("policies.md", r"ends after (\w+) seconds with", "noxu.admission.expressions:LONGEST", 1),
    ("reliability.md", r"SIGTERM: within (\d+) s", "noxu.process.server:STOP_WITHIN", 1),
    ("reliability.md", r"closed (\d+) s after they stop", "noxu.http.watch:STALLED_AFTER", 1),
    ("storage.md", r"while (\S+ \d+) writes or", "noxu_storage.group_commit:MAX_PENDING_WRITES", 1),
    ("storage.md", r"writes or (\d+) MiB are queued", "noxu_storage.group_commit:MAX_PENDING_BYTES", MIB),
    ("storage.md", r"Every (\w+) minutes the server", "noxu.process.server:COMPACT_EVERY", 60),
    ("storage.md", r"It goes through (\d+) revisions at a time", "noxu_storage.sqlite:SWEEP_SPAN", 1),
    ("storage.md", r"less than (\S+ \d+) events and", "noxu_storage.log:TAIL_EVENTS", 1),
    ("storage.md", r"events and (\d+) MiB behind", "noxu_storage.log:TAIL_BYTES", MIB),
    ("storage.md", r"(\w+) a second the server tries", "noxu_storage.sqlite:RETRY_INTERVAL", 1),
    ("storage.md", r"`application_id` (0x\w+)", "noxu_storage.migrations:APPLICATION_ID", 1),
    ("threat-model.md", r"closed after (\d+) s, without an answer", "noxu.http.limits:Limits.head_deadline", 1),
    ("threat-model.md", r"a body after (\d+) s: 504", "noxu.http.limits:Limits.body_deadline", 1),
    ("threat-model.md", r"idle: (\d+) s", "noxu.http.limits:Limits.idle_deadline", 1),
    ("threat-model.md", r"a head of more than (\w+) megabyte", "noxu.http.limits:Limits.head", MIB),
    ("threat-model.md", r"more than (\d+) reads or", "noxu.config:MAX_IN_FLIGHT", 1),
    ("threat-model.md", r"reads or (\d+) writes at once", "noxu.config:MAX_MUTATING_IN_FLIGHT", 1),
    ("threat-model.md", r"at most (\d+) KiB of warnings", "noxu.http.negotiation:MAX_WARNING_RUNES", KIB),
    ("threat-model.md", r"bodies over (\d+) MiB", "noxu.api.codec:MAX_BODY", MIB),
    ("threat-model.md", r"would not take: (\S+) MiB", "noxu.registry.write.store:MAX_REQUEST", MIB),
    ("threat-model.md", r"beyond (\d+) levels 400", "noxu.go.structs:MAX_DEPTH", 1),
    ("threat-model.md", r"selectors of (\d+) Ki characters", "noxu.api.selectors:MAX_LENGTH", KIB),
    ("threat-model.md", r"disconnected after (\d+) s without", "noxu.http.limits:Limits.send_deadline", 1),
    ("threat-model.md", r"read nothing for (\w+) second", "noxu.http.limits:Limits.min_stalled", 1),
    ("threat-model.md", r"leaves at most (\d+) KiB in the", "noxu.http.sending:PIECE", KIB),
    ("threat-model.md", r"buffer and (\d+) KiB in the kernel", "noxu.http.limits:Limits.kernel_unsent", KIB),
    ("threat-model.md", r"at most (\d+) MiB in total", "noxu.http.limits:Limits.unsent", MIB),
    ("threat-model.md", r"429 beyond (\S+ \d+) watches", "noxu.http.watch_requests:MAX_WATCHES", 1),
    ("threat-model.md", r"or (\d+) MiB of selectors", "noxu.http.watch_requests:MAX_MEMORY", MIB),
    ("threat-model.md", r"until then at most (\d+) KiB each", "noxu.http.watch:HIGH_WATER+CHUNK_BYTES", KIB),
    ("threat-model.md", r"cut off after (\d+) s; until then", "noxu.http.watch:STALLED_AFTER", 1),
]

# -- docs/limits.md: the first column, and the constant
PAGE: Final = {
    "the body of a request": "noxu.api.codec:MAX_BODY",
    "the head of a request": "noxu.http.limits:Limits.head",
    "header fields of a request": "noxu.http.limits:Limits.headers",
    "trailers of a body in chunks, or the extensions of a chunk": "noxu.http.limits:Limits.trailer",
    "frames that a client sends at once on the WebSocket of a watch": "noxu.http.limits:Limits.frames",
    "bytes of a method": "noxu.http.connection:MAX_METHOD",
    "levels of nesting in JSON": "noxu.go.json:MAX_DEPTH",
    "operations of a JSON patch, also of a webhook's": "noxu.api.json_patches:MAX_JSON_PATCH_OPERATIONS",
    "bytes that the `copy` operations of a JSON patch add": "noxu.apply.patch:MAX_COPIED",
    "characters of a label or field selector": "noxu.api.selectors:MAX_LENGTH",
    "characters of `Accept` or `Content-Type`": "noxu.http.negotiation:MAX_NEGOTIATED",
    "parameters of a query": "noxu.http.request:MAX_PARAMETERS",
    "characters of the parameter `timeout`": "noxu.http.request:MAX_DURATION",
    "groups and values of extra of an impersonated user": "noxu.security.impersonation:MAX_PARTS",
    "characters that YAML aliases expand to": "noxu.go.yaml:MAX_ALIASED_TEXT",
    "`%TAG` directives of a YAML document": "noxu.go.yaml:MAX_TAG_DIRECTIVES",
    "characters of the warnings of an answer": "noxu.http.negotiation:MAX_WARNING_RUNES",
    "indentation of an answer (`?pretty=1`)": "noxu.api.codec:MAX_INDENTATION",
    "unknown fields that a strict answer lists": "noxu.go.structs:MAX_STRICT_ERRORS",
    "values that the printer columns of one object look at; 8 characters of a cell count as one": (
        "noxu.tables.jsonpath:MAX_OF_ROW"
    ),
    "the same for all rows of an answer": "noxu.tables.jsonpath:MAX_OF_REQUEST",
    "errors that an answer lists": "noxu.api.errors:MAX_REPORTED_ERRORS",
    "characters of the errors of an answer": "noxu.api.errors:MAX_REPORTED_TEXT",
    "an object as it is stored": "noxu.registry.write.store:MAX_REQUEST",
    "annotations of an object, keys and values": "noxu.api.meta:MAX_ANNOTATIONS",
    "`data` of a ConfigMap or Secret": "noxu.kinds.core:MAX_DATA",
    "field managers of updates in `managedFields`": "noxu.apply.manager:MAX_UPDATE_MANAGERS",
    "bytes of the name of a field manager": "noxu.api.meta:MAX_MANAGER",
    "characters that `generateName` contributes to a name": "noxu.api.meta:MAX_GENERATED_BASE",
    "what defaults add to an object": "noxu.schema.defaulting:MAX_ADDED",
    "the lifetime of an Event after its last write": "noxu.config:DEFAULT_EVENT_TTL",
    "invalid fields that are collected for an object": "noxu.schema.validation:MAX_FOUND",
    "errors of CEL rules for an object": "noxu.cel.kubernetes.validation:MAX_FAILURES",
    "nested schemas of a definition": "noxu.go.structs:MAX_DEPTH",
    "selectable fields of a version": "noxu.crd.strictness:MAX_SELECTABLE_FIELDS",
    "characters of a pattern": "noxu.schema.patterns:MAX_LENGTH",
    "instructions of all patterns of a definition": "noxu.crd.validation:MAX_PATTERN_SIZE",
    "estimated cost of a CEL rule": "noxu.cel.kubernetes.schema_rules:MAX_RULE_ESTIMATE",
    "estimated cost of all rules of a schema": "noxu.cel.kubernetes.schema_rules:MAX_SCHEMA_ESTIMATE",
    "actual cost of one CEL rule or expression": "noxu.cel.cost.runtime:PER_CALL_LIMIT",
    "actual cost of all rules for an object": "noxu.cel.kubernetes.validation:BUDGET",
    "actual cost of a policy, for one binding and param": "noxu.admission.expressions:BUDGET",
    "values that a CEL rule makes, or the expressions of a policy together for one binding and param": (
        "noxu.cel.memory:MAX_BYTES"
    ),
    "values of the JSON patch or apply configuration of a policy": "noxu.cel.memory:MAX_BYTES",
    "characters of the error of a CEL evaluation": "noxu.cel.errors:MAX_MESSAGE",
    "processor time of a CEL rule": "noxu.registry.turns:MAX_RULE_SECONDS",
    "processor time of a policy, for one binding and param": "noxu.admission.expressions:LONGEST",
    "processor time of a request in a thread": "noxu.registry.turns:MAX_THREAD_SECONDS",
    "requests that read, at the same time": "noxu.config:MAX_IN_FLIGHT",
    "requests that write, at the same time": "noxu.config:MAX_MUTATING_IN_FLIGHT",
    "requests of more than 256 KiB that are decoded at the same time": "noxu.registry.offload:SLOTS",
    "bytes of smaller requests, from 16 KiB on, that are decoded at the same time": (
        "noxu.registry.offload:MEDIUM_ROOM"
    ),
    "requests that compute in a thread, at the same time": "noxu.registry.turns:THREADS",
    "processor time of a turn in a thread, if others wait": "noxu.registry.turns:SLICE",
    "requests that have had a turn, and wait for another one": "noxu.registry.turns:MAX_PARKED",
    "documents of OpenAPI that are kept": "noxu.discovery.openapi:MAX_KEPT",
    "parts of `/openapi/v2` that are kept": "noxu.discovery.openapi:MAX_PARTS",
    "documents of discovery and OpenAPI that servers of a process with the same definitions share": (
        "noxu.registry.served_resources:MAX_DOCUMENTS"
    ),
    "their number": "noxu.registry.served_resources:MAX_FORMS",
    "open watches": "noxu.http.watch_requests:MAX_WATCHES",
    "memory of the selectors of watches": "noxu.http.watch_requests:MAX_MEMORY",
    "tenants of a server": "noxu.config:MAX_TENANTS",
    "tenants that start at the same time": "noxu.control.tenants:STARTS",
    "[templates](testing.md#templates) of tests that a process keeps": "noxu.testing.templates:MAX_TEMPLATES",
    "bytes of their objects; the template that was used last is always kept": "noxu.testing.templates:MAX_BYTES",
    "connections, those of tenants included": "noxu.http.limits:Limits.connections",
    "incomplete TLS handshakes": "noxu.http.tls:MAX_HANDSHAKES",
    "requests that have not arrived completely, together": "noxu.http.limits:Limits.incoming",
    "answers that clients have not read, together": "noxu.http.limits:Limits.unsent",
    "writes that wait for the store": "noxu_storage.group_commit:MAX_PENDING_WRITES",
    "bytes of writes that wait for the store": "noxu_storage.group_commit:MAX_PENDING_BYTES",
    "lines of the audit log that wait to be written": "noxu.observability.line_writer:MAX_WAITING",
    "a request that is no watch": "noxu.config:REQUEST_TIMEOUT",
    "the shortest watch, if the client sets no duration (the longest is twice as long)": (
        "noxu.config:MIN_REQUEST_TIMEOUT"
    ),
    "the head of a request to arrive": "noxu.http.limits:Limits.head_deadline",
    "the body of a request to arrive": "noxu.http.limits:Limits.body_deadline",
    "an idle connection": "noxu.http.limits:Limits.idle_deadline",
    "a client that reads nothing of its answer": "noxu.http.limits:Limits.send_deadline",
    "a watch that reads nothing, with events waiting": "noxu.http.watch:STALLED_AFTER",
    "a read that waits for a future `resourceVersion`": "noxu.registry.reader:BLOCK_TIMEOUT",
    "an admission webhook (`timeoutSeconds`)": "noxu.admission.webhooks:_MAX_TIMEOUT",
    "a review of a conversion webhook": "noxu.registry.conversion.converters:TIMEOUT",
    "requests in flight when the server stops": "noxu.process.server:STOP_WITHIN",
    "an event loop that does not react to the signal that stops the server": "noxu.process.signals:STUCK_FOR",
    "the period of compaction, after which history may be gone": "noxu.process.server:COMPACT_EVERY",
    "attempts at a write while others change the object": "noxu.registry.persistence:MAX_ATTEMPTS",
    "names that are generated for an object": "noxu.registry.write:GENERATE_NAME_ATTEMPTS",
    "attempts at an eviction while others change the Pod": "noxu.registry.subresources.eviction:ATTEMPTS",
    "attempts at converting a change together with others that fail": (
        "noxu.registry.conversion.converters:MAX_ATTEMPTS"
    ),
    "the pause of a controller before it attempts a key again": "noxu.controllers.queue:LONGEST_DELAY",
    "the answer of a webhook": "noxu.webhook.client:MAX_ANSWER",
    "objects of a conversion review": "noxu.registry.conversion.converters:MAX_OBJECTS",
    "bytes of the objects of a conversion review": "noxu.registry.conversion.converters:MAX_BYTES",
    "conversion reviews of a list at the same time": "noxu.registry.conversion.converters:CONCURRENCY",
    "events that a running watch may be behind, whatever is compacted": "noxu_storage.log:TAIL_EVENTS",
    "bytes of those events": "noxu_storage.log:TAIL_BYTES",
    "characters of a moment of the past": "noxu.control.moments:MAX_TEXT",
    "the time of an answer of `diff`, `blame` and `bisect`": "noxu.control.object_states:MAX_SECONDS",
    "states of an object that `blame` and `bisect` look at": "noxu.control.object_states:MAX_STATES",
    "changes of a condition in an answer of `bisect`": "noxu.control.bisect:MAX_CHANGES",
    "levels of an object that `blame` looks at": "noxu.control.blame:MAX_DEPTH",
    "bytes of the differences in an answer of `diff`": "noxu.control.diff:MAX_BYTES",
    "objects in an answer of `diff`": "noxu.control.diff:DIFFERENCES",
    "lines of an object that `diff` compares": "noxu.control.unified:MAX_LINES",
    "views of the past that are kept, with their definitions and what is compiled for those in use": "noxu.control.past:MAX_VIEWS",
    "writes of which it is kept in memory who made them; about 1 KB each": "noxu.registry.authors:MAX_WRITES",
    "reads that no write of their client has followed yet": "noxu.registry.authors:MAX_READS",
    "the same of one client": "noxu.control.history:MAX_READS_OF_CLIENT",
    "clients whose last reads and writes are remembered": "noxu.control.history:MAX_READERS",
    "clients whose ended watches are remembered": "noxu.registry.authors:MAX_CLIENTS",
    "ended watches of a client that are remembered": "noxu.registry.authors:MAX_ENDED",
    "characters of a user agent that are kept with a write": "noxu.registry.authors:MAX_TEXT",
    "characters of a `tracestate` that are handed on": "noxu.http.trace_context:MAX_TRACESTATE",
    "members of a `tracestate`": "noxu.http.trace_context:MAX_TRACESTATE_MEMBERS",
    "characters of a selector that are kept": "noxu.registry.authors:MAX_SELECTOR",
    "characters of the name of a snapshot": "noxu.control.snapshots:MAX_NAME",
    "attempts at a restore while other servers of an etcd write": "noxu.control.snapshots:MAX_ATTEMPTS",
    "writes under way to etcd": "noxu_storage.etcd.writes:MAX_WRITES",
    "the time in which a read or a write waits for an etcd that does not answer": "noxu_storage.etcd.writes:RESOLVE_WITHIN",
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


@rows(("document", "pattern", "constant", "unit"), LIMITS, ids=[f"{row[0]}: {row[2]}" for row in LIMITS])
def test_a_documented_limit_is_that_of_the_program(document: str, pattern: str, constant: str, unit: float) -> None:
    text = " ".join((DOCS / document).read_text().split())  # wherever lines break
    [found] = re.findall(pattern, text)
    module, _, names = constant.partition(":")
    value = sum(attrgetter(name)(import_module(module)) for name in names.split("+"))
    assert number(found) * unit == pytest.approx(value)


def test_the_page_of_limits_has_exactly_these() -> None:
    lines = (DOCS / "limits.md").read_text().splitlines()
    tables = [line for line in lines if line.startswith("|") and not line.startswith(("| limit ", "|---"))]
    assert len(ROWS) == len(tables)
    assert [row.limit for row in ROWS] == list(PAGE)
    assert {row.origin for row in ROWS} == {"reference", "Noxu"}


@rows("row", ROWS, ids=lambda row: row.limit)
def test_a_limit_of_the_page_is_that_of_the_program(row: Row) -> None:
    module, _, name = PAGE[row.limit].partition(":")
    assert number(row.value) * UNITS[row.unit] == attrgetter(name)(import_module(module))


def test_the_settings_of_the_page_are_options() -> None:
    known = parser_of("serve")._option_string_actions
    options = [option for row in ROWS for option in re.findall(r"`(--[\w-]+)`", row.setting)]
    assert len(options) >= 5
    assert [option for option in options if option not in known] == []
