"""Commands about a store as a whole: `noxu copy`, which `noxu snapshot FILE` is, too, and `noxu check`.

`noxu copy` copies stored objects between data directories, files and etcd. The source is read at one revision. Values are
copied as they are, so uids, times, generations and managed fields remain; a layout translates them where etcd has another
form. A new file keeps resourceVersions, too. A new file appears when it is complete, an existing one changes in one
transaction, and under a prefix of etcd an interrupted copy is marked as such: the same command completes it, from the same
revision. Nothing is deleted, and nothing is replaced without --merge.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from noxu.commands import progress
from noxu.config import DEFAULT_EVENT_TTL, Etcd, StartError
from noxu.process import stores
from noxu.registry import storage_form
from noxu.registry.storage_form import is_temporary
from noxu_storage.check import Problem, check
from noxu_storage.snapshot import Snapshot, snapshot
from noxu_storage.state_file import existing_file, new_file
from noxu_storage.types import (
    EVERYTHING,
    Corrupt,
    Key,
    KeyValue,
    OpenError,
    Progress,
    Revision,
    Unavailable,
)

if TYPE_CHECKING:
    from noxu_storage.etcd.state import EtcdState


PAGE: Final = 256  # states that are written at a time
SHOWN: Final = 100  # messages about what is not copied; more are counted
RELIST: Final = "resourceVersions are new: clients have to list again"


class CopySource(NamedTuple):
    """The states of a place at a revision. `pages` adds to `refused` what it cannot read, and why."""

    revision: Revision
    total: int
    pages: Callable[[], AsyncIterator[Sequence[KeyValue]]]


class CopyOutcome(NamedTuple):
    """What was copied. `resource_versions` says what happened to them; `refused` is what could not be copied, and why."""

    revision: Revision
    objects: int
    unchanged: int
    resource_versions: str
    refused: dict[str, str]


def run_copy(options: argparse.Namespace) -> int:
    """Exit status 0: everything is copied; 1: something is not."""
    source, destination = options.source, options.destination
    try:
        with progress.shown("copy", quiet=options.quiet) as show:
            outcome = asyncio.run(copy(source, destination, merge=options.merge, show=show))
    except (OpenError, StartError, Corrupt, Unavailable) as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    for name, why in islice(outcome.refused.items(), SHOWN):
        print(f"noxu: not copied: {name}: {why}", file=sys.stderr)
    if len(outcome.refused) > SHOWN:
        print(f"noxu: not copied: {len(outcome.refused) - SHOWN} more", file=sys.stderr)
    unchanged = f", {outcome.unchanged} of which were there" if outcome.unchanged else ""
    print(
        f"{_count(outcome.objects, 'object')} copied from {text_of(source)} at revision {outcome.revision} to "
        f"{text_of(destination)}{unchanged}; {outcome.resource_versions}"
    )
    if outcome.refused:
        print(f"{_count(len(outcome.refused), 'key')} not copied")
    return 1 if outcome.refused else 0


async def copy(source: Path | Etcd, destination: Path | Etcd, *, merge: bool, show: Progress) -> CopyOutcome:
    """Raises OpenError, StartError, Corrupt, Unavailable."""
    if isinstance(destination, Etcd):
        return await _to_etcd(source, destination, merge=merge, show=show)
    refused: dict[str, str] = {}
    file = file_of(destination)
    is_new = not (merge and file.exists())
    async with _opened(source, 0, refused) as state:
        with new_file(file, state.revision) if is_new else existing_file(file) as writer:

            async def write(states: Sequence[KeyValue]) -> None:
                writer.write(states)

            objects = await _each_page(state, write, show)
        kept = f"{_count(writer.moved, 'resourceVersion')} changed" if writer.moved else "resourceVersions are kept"
        return CopyOutcome(state.revision, objects, writer.unchanged, kept if is_new else RELIST, refused)


async def _to_etcd(source: Path | Etcd, destination: Etcd, *, merge: bool, show: Progress) -> CopyOutcome:
    """Raises OpenError, StartError, Corrupt, Unavailable."""
    servers, layout, tls, user = stores.etcd_access(destination)
    from noxu_storage.etcd import copy as etcd_copy

    where = text_of(destination)
    refused: dict[str, str] = {}
    async with etcd_copy.connected(servers, tls, user) as client:
        marked = await etcd_copy.interrupted(client, layout)
        revision = _interrupted_revision(marked, source, where) if marked is not None else 0
        if marked is None and not merge and (keys := await etcd_copy.count(client, layout)):
            raise OpenError(f"{where} has {_count(keys, 'key')}; name another prefix, or give --merge")
        async with _opened_again(source, revision, refused, where) as state:
            mark = marked if marked is not None else _mark(source, state.revision, merge)
            replace, lifetimes = bool(json.loads(mark)["merge"]), stores.lifetimes(DEFAULT_EVENT_TTL)
            async with etcd_copy.copying(client, layout, mark, lifetimes, replace=replace) as writer:
                objects = await _each_page(state, writer.write, show)
            refused |= {_name(key): why for key, why in writer.refused.items()}
    return CopyOutcome(state.revision, objects - len(writer.refused), writer.unchanged, RELIST, refused)


def _mark(source: Path | Etcd, revision: Revision, merge: bool) -> bytes:
    """What identifies a copy while it is incomplete."""
    return json.dumps({"from": text_of(source), "revision": revision, "merge": merge}).encode()


def _interrupted_revision(mark: bytes, source: Path | Etcd, where: str) -> Revision:
    """The revision at which a copy that was interrupted reads. Raises OpenError if it is another copy."""
    try:
        origin_mark = json.loads(mark)
        origin, revision = origin_mark["from"], int(origin_mark["revision"])
    except (ValueError, TypeError, LookupError):
        origin, revision = "an unknown place", 0
    if origin != text_of(source):
        raise OpenError(
            f"a copy from {origin} to {where} was interrupted: complete it with the same --from, or remove its keys with "
            "etcdctl del --prefix"
        )
    return revision


async def _each_page(source: CopySource, write: Callable[[Sequence[KeyValue]], Awaitable[None]], show: Progress) -> int:
    """Write all pages. Returns the number of states."""
    objects = done = 0
    async for page in source.pages():
        copied = [state for state in page if not is_temporary(state.key)]
        await write(copied)
        objects += len(copied)
        done += len(page)
        show(done, source.total)
    return objects


@contextlib.asynccontextmanager
async def _opened(place: Path | Etcd, revision: Revision, refused: dict[str, str]) -> AsyncIterator[CopySource]:
    """A place at a revision (0: its newest). What cannot be read is added to `refused`. Raises OpenError, StartError."""
    if isinstance(place, Path):
        with snapshot(file_of(place), revision) as file:
            yield CopySource(file.revision, file.count(EVERYTHING), lambda: _pages_of_file(file, refused))
        return
    access = stores.etcd_access(place)
    from noxu_storage.etcd import state as etcd_state

    async with etcd_state.opened(*access, revision=revision) as state:
        if not state.total:
            raise OpenError(f"{text_of(place)} has no objects: name the prefix of the servers that wrote them")
        yield CopySource(state.revision, state.total, lambda: _pages_of_etcd(state, refused))


@contextlib.asynccontextmanager
async def _opened_again(
    place: Path | Etcd, revision: Revision, refused: dict[str, str], where: str
) -> AsyncIterator[CopySource]:
    """Like `_opened`, for a copy to `where` that was interrupted unless `revision` is 0."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            state = await stack.enter_async_context(_opened(place, revision, refused))
        except OpenError as error:
            if not revision:
                raise
            raise OpenError(
                f"{error}; the copy to {where} was interrupted, and cannot be completed without that revision: remove its "
                "keys with etcdctl del --prefix, and copy again"
            ) from None
        yield state


async def _pages_of_file(file: Snapshot, refused: dict[str, str]) -> AsyncIterator[Sequence[KeyValue]]:
    """Raises Corrupt, Unavailable."""
    states = file.values(EVERYTHING)
    while page := list(islice(states, PAGE)):
        yield page
    refused |= {_name(key): "its bytes do not match their checksum" for key in file.corrupt}


async def _pages_of_etcd(state: EtcdState, refused: dict[str, str]) -> AsyncIterator[Sequence[KeyValue]]:
    """Raises Unavailable."""
    from noxu_storage.etcd.history import BARRIER

    async for items in state.pages():
        page = []
        for item in items:
            decoded = state.state(item)
            if decoded is not None:
                page.append(decoded)
            elif item.key != state.layout.prefix + BARRIER:
                refused[item.key.decode("utf-8", "backslashreplace")] = "its key has another form than those of objects"
        yield page


def file_of(place: Path) -> Path:
    """The file of a place: what is named .db is a file, everything else a data directory."""
    return place if place.suffix == ".db" or place.is_file() else place / stores.FILE


def text_of(place: Path | Etcd) -> str:
    """A place as messages and marks name it."""
    if isinstance(place, Path):
        return str(file_of(place).absolute())
    return f"{','.join(place.servers)}/{place.prefix.strip('/')}"


def _name(key: Key) -> str:
    return " ".join(key).encode("utf-8", "backslashreplace").decode()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# -- noxu check --------------------------------------------------------------------------------------------------------


def run_check(options: argparse.Namespace) -> int:
    """Exit status 0: no problems; 1: problems, or nothing can be verified."""
    try:
        if options.etcd is not None:
            problems = _check_etcd(options.etcd, options.quiet)
        else:
            problems = _check_file(options.file, options.quiet)
    except (OpenError, StartError, Unavailable) as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    for problem in problems:
        print(f"  {problem}")
    count = len(problems)
    print(f"{count} problem{'s' if count > 1 else ''} found" if count else "no problems found")
    return 1 if count else 0


def _check_file(path: Path, quiet: bool) -> Sequence[Problem]:
    with progress.shown("check", "rows", quiet=quiet) as show:
        report = check(path / stores.FILE if path.is_dir() else path, show, storage_form.problem)
    print(
        f"{report.path}: format {report.version}, revision {report.revision}, compacted to {report.compacted}, "
        f"{report.keys} keys, {report.rows} rows"
    )
    return report.problems


def _check_etcd(options: Etcd, quiet: bool) -> Sequence[Problem]:
    """Raises StartError, OpenError, Unavailable."""
    access = stores.etcd_access(options)
    from noxu_storage.etcd import check as etcd_check

    with progress.shown("check", "keys", quiet=quiet) as show:
        report = asyncio.run(etcd_check.check(*access, verify=storage_form.problem, progress=show))
    for remark in report.remarks:
        print(f"noxu: {remark}", file=sys.stderr)
    print(
        f"{', '.join(options.servers)}, {options.prefix}: etcd {', '.join(report.versions)}, revision {report.revision}, "
        f"compacted to {report.compacted}, {report.keys} keys, {report.others} keys of other forms"
    )
    return report.problems
