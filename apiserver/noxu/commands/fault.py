"""`noxu fault`: add faults to a running server, list them and what they have hit, clear them (`noxu.control.fault_routes`).

noxu fault add resource=widgets verbs=update,patch error=Conflict times=3
noxu fault add -f plan.yaml
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.commands import calls, fault_shrink
from noxu.commands.api_client import ApiClient, RequestError
from noxu.control.faults import plans
from noxu.control.faults.rules import from_arguments
from noxu.values import Json, Object

PATH: Final = "/_noxu/faults"
_LISTS: Final = ("verbs",)


def run(options: argparse.Namespace) -> int:
    """Exit status 0; 1: the server does not answer, or refuses, or the plan cannot be read. Of shrink: see there."""
    if options.action == "shrink":
        return fault_shrink.run(options)
    return calls.answered(options, lambda client: _ACTIONS[options.action](options, client))


def _list(options: argparse.Namespace, client: ApiClient) -> None:
    _show_rules(client.call("GET", PATH), options)


def _add(options: argparse.Namespace, client: ApiClient) -> None:
    rules: list[Object] = []
    if options.file is not None:
        rules += _plan(options.file).rules
    try:
        rules += plans.preset_rules(options.preset)
    except ApiError as error:
        raise RequestError(error.message) from None
    if options.words:
        rules.append(rule_of(options.words))
    _show_rules(client.call("POST", PATH, value={"rules": rules}), options)


def _replace(options: argparse.Namespace, client: ApiClient) -> None:
    plan = _plan(options.file)
    seed = plan.seed if options.seed is None else options.seed
    _show_rules(client.call("PUT", PATH, value={"rules": [*plan.rules], "seed": seed}), options)


def _fired(options: argparse.Namespace, client: ApiClient) -> None:
    fired = client.call("GET", f"{PATH}/fired")
    calls.show(fired, options.output, lambda: _rows_of_hits(fired["fired"]))


def _clear(options: argparse.Namespace, client: ApiClient) -> None:
    for name in options.words:
        client.call("DELETE", f"{PATH}/{name}")
    if not options.words:
        client.call("DELETE", PATH)
    _list(options, client)


_ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace, ApiClient], None]]] = {
    "list": _list,
    "add": _add,
    "replace": _replace,
    "fired": _fired,
    "clear": _clear,
}


def _plan(file: Any) -> plans.Plan:
    """Raises RequestError."""
    try:
        return plans.read(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except ApiError as error:
        raise RequestError(f"{file}: {error.message}") from None


def rule_of(words: Sequence[str]) -> Object:
    """A rule of FIELD=VALUE words; values are YAML, and lists have commas. Raises RequestError."""
    fields: dict[str, Json] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise RequestError(f"{word}: write FIELD=VALUE, such as error=Conflict")
        value = [*text.split(",")] if name in _LISTS else _value(text)
        fields[name] = value
    return from_arguments(fields)


def _value(text: str) -> Json:
    """Raises RequestError."""
    if not text:
        return ""  # of YAML it is null, which is absent
    try:
        value: Json = codec.decode_yaml(text.encode()).value
    except ValueError as error:
        raise RequestError(f"{text}: {error}") from None
    return value


def _show_rules(answer: Object, options: argparse.Namespace) -> None:
    def rows() -> list[list[str]]:
        titles = ["name", "match", "effect", "hit"]
        return [
            titles,
            *([rule["name"], _match(rule), _effect(rule), str(rule.get("hit", 0))] for rule in answer["rules"]),
        ]

    calls.show(answer, options.output, rows)


def _match(rule: Object) -> str:
    match = {**rule.get("match", {}), **{name: rule[name] for name in _LIMITS if name in rule}}
    return " ".join(f"{name}={','.join(value) if isinstance(value, list) else value}" for name, value in match.items())


_LIMITS: Final = ("nth", "every", "times", "probability", "from", "until")


def _effect(rule: Object) -> str:
    [(name, value)] = [pair for pair in rule.items() if pair[0] not in ("name", "match", "matched", "hit", *_LIMITS)]
    return f"{name}={value}"


def _rows_of_hits(fired: Sequence[Object]) -> list[list[str]]:
    titles = ["time", "rule", "number", "verb", "resource", "namespace", "object", "user", "agent"]
    return [
        titles,
        *(
            [
                hit["time"],
                hit["rule"],
                str(hit["number"]),
                *(hit["request"].get(name, "") for name in ("verb", "resource", "namespace", "name", "user", "agent")),
            ]
            for hit in fired
        ),
    ]
