"""`noxu diff`, `noxu blame` and `noxu bisect`: what a running server says about its past (`noxu.control.diff`, `past_calls`)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module

from noxu.commands import calls
from noxu.commands.api_client import ApiClient
from noxu.control import writers
from noxu.values import Object


def run_diff(options: argparse.Namespace) -> int:
    """Exit status 0; 1: the server does not answer, or refuses. That of `noxu.commands.diff` if files are compared."""
    if options.compares_files:
        return import_module("noxu.commands.diff").run(options)  # type: ignore[no-any-return]
    return calls.answered(options, lambda client: _diff(options, client))


def _diff(options: argparse.Namespace, client: ApiClient) -> None:
    query = {"from": options.since, "to": options.to, "type": options.type, "name": options.name}
    answer = client.call("GET", "/_noxu/diff", {**query, "namespace": options.namespace, "limit": options.limit})
    if options.output == "table":
        columns = ("change", "kind", "namespace", "name")
        calls.show(answer, "table", lambda: calls.rows_of(answer["items"], columns))
    elif options.output == "text":
        print("".join(item["diff"] for item in answer["items"]), end="")
    else:
        calls.show(answer, options.output, list)
    if answer["remaining"]:
        calls.complain(f"{answer['remaining']} more objects were written in between: --limit shows more")


def run_blame(options: argparse.Namespace) -> int:
    """Exit status 0; 1: the server does not answer, or refuses."""
    return calls.answered(options, lambda client: _blame(options, client))


def _blame(options: argparse.Namespace, client: ApiClient) -> None:
    query = {**_object(options), "managedFields": str(options.show_managed_fields).lower()}
    answer = client.call("GET", "/_noxu/blame", query)
    if options.output in ("text", "table"):
        print("\n".join(writers.annotated(answer)))
    else:
        calls.show(answer, options.output, list)
    _say_incomplete(answer, "older lines are shown with the oldest revision that is known")


def run_bisect(options: argparse.Namespace) -> int:
    """Exit status 0; 1: the server does not answer, or refuses, or the condition was never true."""
    return calls.answered(options, lambda client: _bisect(options, client))


def _bisect(options: argparse.Namespace, client: ApiClient) -> int:
    answer = client.call("GET", "/_noxu/bisect", {**_object(options), "condition": options.condition})
    changes: Sequence[Object] = answer["changes"]
    titles = ["revision", "time", "true", "writer", *(["why"] if any("why" in change for change in changes) else [])]
    rows = [
        [
            str(change["revision"]),
            writers.short_time(change),
            str(change["met"]).lower(),
            writers.name_of(change),
            change.get("why", ""),
        ]
        for change in changes
    ]
    shown = [titles, *(row[: len(titles)] for row in rows)]
    calls.show(answer, options.output, lambda: shown)
    _say_incomplete(answer, "the first state that is known may not be the first one")
    if answer["revision"] is None:
        calls.complain(f"it was true in none of {answer['states']} states")
        return 1
    return 0


def _object(options: argparse.Namespace) -> dict[str, str | int]:
    return {"type": options.type, "name": options.name, "namespace": options.namespace, "at": options.at}


def _say_incomplete(answer: Object, meaning: str) -> None:
    if not answer["complete"]:
        calls.complain(f"the past does not go back to the creation of the object: {meaning}")
