"""Who wrote a revision, as answers of `/_noxu/` say it.

The history of the server knows it (`control.history`). Of what came before the server's start, or from another server of the
same etcd, the object itself tells: the field manager whose entry in managedFields is new, and its time in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from noxu.control.history import WriteHistory
from noxu.go.time import MICRO, format_time
from noxu.values import Json, Object
from noxu_storage.types import Revision

_NAMES: Final = ("manager", "controller", "user", "agent")
"""What a writer is called, the first one that is known."""
_SECONDS: Final = len("2006-01-02T15:04:05")  # of a time: people need no more
_FIELDS: Final = ("verb", "subresource", "user", "agent", "manager", "controller")


async def writer(history: WriteHistory | None, revision: Revision, manager: Object) -> Object:
    """A write: its revision, time, verb, user, user agent, field manager. `manager` is what the object tells of it."""
    record = None if history is None else await history.of(revision)
    if record is None:
        return {"revision": revision, **manager}
    author = {**record.author._asdict(), "manager": record.author.manager or manager.get("manager")}
    known = {name: author[name] for name in _FIELDS if author.get(name)}
    return {"revision": revision, "time": format_time(record.time, MICRO), **known}


def manager_of(before: Object | None, value: Object) -> Object:
    """The field manager that wrote a state, and when, from its managedFields; empty if these do not tell."""
    old, new = _entries(before or {}), _entries(value)
    changed = [entry for entry in new if entry not in old]
    if not changed:
        return {}
    newest = max(changed, key=lambda entry: str(entry.get("time") or ""))
    facts: Iterable[tuple[str, Json]] = (("time", newest.get("time")), ("manager", newest.get("manager")))
    return {name: text for name, text in facts if text}


def _entries(value: Object) -> list[Object]:
    entries = (value.get("metadata") or {}).get("managedFields")
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


# -- as text -----------------------------------------------------------------------------------------------------------


def annotated(answer: Object) -> Sequence[str]:
    """The lines of an answer to `blame`, each after its revision, time and writer."""
    writes = {
        write["revision"]: (str(write["revision"]), short_time(write), name_of(write)) for write in answer["writes"]
    }
    widths = [max(map(len, column)) for column in zip(*writes.values(), strict=True)]
    heads = {
        revision: f"{number:>{widths[0]}}  {time:<{widths[1]}}  {who:<{widths[2]}}"
        for revision, (number, time, who) in writes.items()
    }
    return [f"{heads[line['revision']]}  {line['text']}".rstrip() for line in answer["lines"]]


def short_time(write: Mapping[str, Json]) -> str:
    """A time in whole seconds, "" if it is not known."""
    time = str(write.get("time") or "")
    return f"{time[:_SECONDS]}Z" if time else ""


def name_of(write: Mapping[str, Json]) -> str:
    """What a writer is called, "" if that is not known."""
    return next((str(write[name]) for name in _NAMES if write.get(name)), "")
