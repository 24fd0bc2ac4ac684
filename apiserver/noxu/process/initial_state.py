"""The objects with which a server begins: those of a file that `noxu snapshot` or a stopped server has written.

The file is read at its newest revision, and never changed. resourceVersions are those of the file and grow from there; its
history is left behind, so watches from before end with 410 and list again. What belongs to the server that wrote it, such as
its leases, is left out. A new data directory gets its file when that is complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from noxu.config import StartError
from noxu.registry.storage_form import is_temporary
from noxu_storage.memory import Base, base_of
from noxu_storage.snapshot import Snapshot, snapshot
from noxu_storage.state_file import new_file
from noxu_storage.types import EVERYTHING, Corrupt, KeyValue, OpenError, Unavailable

PAGE: Final = 256  # states that are written at a time


def in_memory(initial: Path) -> Base:
    """What a store in memory begins with. Raises StartError."""
    with _read(initial) as file:
        return base_of(_states(file), file.revision, file.revision)


def in_file(initial: Path, destination: Path) -> None:
    """Make the file of a store. Raises StartError: also if there is one."""
    if destination.exists():
        raise StartError(
            f"--from {initial}: {destination} exists already; start without --from, or name another --data"
        )
    with _read(initial) as file, new_file(destination, file.revision) as writer:
        states = _states(file)
        while page := list(islice(states, PAGE)):
            writer.write(page)


def _states(file: Snapshot) -> Iterator[KeyValue]:
    """All objects. Raises Corrupt at the end if one is left out, Unavailable."""
    for state in file.values(EVERYTHING):
        if not is_temporary(state.key):
            yield state
    if file.corrupt:
        raise Corrupt(f"the checksums of {len(file.corrupt)} values do not match; noxu check names them")


@contextmanager
def _read(initial: Path) -> Iterator[Snapshot]:
    """Raises StartError."""
    try:
        with snapshot(initial) as file:
            yield file
    except (OpenError, Unavailable, Corrupt) as error:
        raise StartError(f"--from {initial}: {error}") from None
