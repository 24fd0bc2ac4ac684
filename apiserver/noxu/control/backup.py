"""A backup of a running server: one file with the state of all objects at one revision, which `noxu serve --from` starts with.

The store is scanned while others write, so what it gives is of different revisions. The log says which keys have changed since
the revision of the backup, and what they were then. With the revision 5:

    scan    a at 3                 written
    put     a at 6, b at 7
    scan    b at 7, c at 4         c is written, b is later than 5
    log     a was "1", of 3        written already
            b was "2", of 2        written

The file is made in a thread, complete on the disk of the server before its first byte is sent, and deleted then: a client
that reads slowly holds nothing but disk. It needs as much room as the objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Final

from noxu.api.errors import ApiError, plain_error
from noxu.control.arguments import TEXT, Argument
from noxu.control.calls import ControlCall, ControlRoute, Download
from noxu.control.differences import Changes
from noxu.control.snapshots import Snapshots
from noxu.expressions import expression
from noxu.files import BACKUP
from noxu.registry.storage_form import is_temporary
from noxu_storage.state_file import new_file
from noxu_storage.store import Store
from noxu_storage.types import EVERYTHING, Compacted, Key, KeyValue, OpenError, Revision, Unavailable

PIECE: Final = 256 * 1024  # bytes of the file that are read at a time
SQLITE: Final = "application/vnd.sqlite3"
_PATH: Final = expression(r"[^ ]*\.backup-[^ ]*")  # where the data are, which clients need not know
_PAGE: Final = 500  # states that have changed, which are written at a time


async def states_at(store: Store, revision: Revision) -> AsyncIterator[Sequence[KeyValue]]:
    """All states at a revision, some at a time, in any order; without corrupt ones. Raises Compacted, Unavailable."""
    read: set[Key] = set()
    async for items in store.scan([b""]):  # every value contains it
        states = [item for item in items if item.revision <= revision]
        read.update(state.key for state in states)
        yield states
    changes = Changes(store, revision, lambda _: False)
    await changes.follow()
    changed = [touched.then for key, touched in changes.touched.items() if touched.then is not None and key not in read]
    for start in range(0, len(changed), _PAGE):
        yield changed[start : start + _PAGE]


async def made(store: Store, revision: Revision, directory: Path | None) -> tuple[BinaryIO, int]:
    """(The open file of a backup, which has no name any more; the number of keys that were read.)

    Raises Compacted, OpenError, Unavailable, OSError: then nothing is left, as after a cancellation.
    """
    thread = ThreadPoolExecutor(1, "noxu-backup")  # SQLite has one thread for a connection
    run = partial(asyncio.get_running_loop().run_in_executor, thread)
    place, file, number = ExitStack(), ExitStack(), 0
    place.push(file)
    try:
        temporary = TemporaryDirectory(prefix=BACKUP, dir=directory, ignore_cleanup_errors=True)
        path = Path(await run(place.enter_context, temporary)) / "backup.db"
        writer = await run(file.enter_context, new_file(path, revision))
        async for states in states_at(store, revision):
            number += len(states)
            await run(writer.write, [state for state in states if not is_temporary(state.key)])
        await run(file.close)  # it is complete
        opened = await run(path.open, "rb")
        await run(place.close)
    except BaseException as error:
        # in the thread, after what it does now, which a cancellation does not end
        thread.submit(place.__exit__, type(error), error, None)
        raise
    finally:
        thread.shutdown(wait=False)
    return opened, number


async def pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    """The content of a file, which is closed at its end."""
    with file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece


async def _save(call: ControlCall) -> Download:
    store, name = call.plane.store, call.query["snapshot"]
    expected: int | None = None
    try:
        if name:
            revision = (await call.control.part(Snapshots).find(name)).revision
        else:
            await store.catch_up()
            expected, revision = await store.count(EVERYTHING), store.revision  # nothing runs in between
        data = call.control.server.config.data  # with etcd it may have nothing, and not be there
        file, number = await made(store, revision, data if data is not None and data.is_dir() else None)
    except Compacted:
        raise ApiError(
            410, "the history that the backup needs was compacted meanwhile: save it again", "Expired"
        ) from None
    except (OpenError, Unavailable, OSError) as error:
        why = _PATH.sub("the file", str(error))
        raise plain_error(f"the backup cannot be made on the disk of the server: {why}") from None
    if expected is not None and number != expected:
        file.close()
        raise plain_error(
            f"{expected - number} of {expected} values cannot be read, and would be missing in the backup: stop the server, "
            "and let noxu check name them"
        )
    return Download(pieces(file), SQLITE)


ROUTES: Final = (
    ControlRoute(
        "GET",
        "/_noxu/backup",
        _save,
        "Download all objects as one file.",
        query={"snapshot": Argument(TEXT, "those of this snapshot instead of the present ones", "")},
    ),
)
