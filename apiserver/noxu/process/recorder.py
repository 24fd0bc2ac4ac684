"""The recording of a server (`noxu serve --record FILE`): from the end of its start until it stops.

A server that is restarted in its process goes on with the file; another process makes it anew. Imported when there is one.
"""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from noxu.config import Config, StartError, own_version
from noxu.control_plane import in_background
from noxu.go.time import MICRO, format_time
from noxu.http.recording import ConversationRecorder
from noxu.recordings import lines
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.process.server import Server


async def begin(server: Server, closing: contextlib.AsyncExitStack) -> None:
    """Record a server from now on, until `closing` is closed. Raises StartError."""
    path, plane, history = server.config.record, server.plane, server.history
    assert path is not None  # the caller has asked for it
    try:
        before = path.read_bytes().count(b"\n") if server.is_restart and path.exists() else 0
        file = lines.RecordingFile(path, goes_on=before > 0)
        began, recorded = time.time(), plane.store.revision
        if before:  # there are no more steps than lines
            earlier = lines.read(path)
            began = datetime.fromisoformat(earlier.began).timestamp()
            recorded = max((write["revision"] for write in earlier.writes), default=earlier.revision)
        else:
            file.add(lines.header(own_version(), _written(began), plane.store.revision, _started(server.config)))
    except (OSError, lines.NoRecording) as error:
        raise StartError(f"--record {path}: {getattr(error, 'strerror', '') or error}") from None
    recorder = ConversationRecorder(file, began, before, recorded)
    closing.push_async_callback(partial(recorder.finish, plane, history))
    if not before:
        await recorder.add_stored(plane)
    await in_background(closing, recorder.follow(plane, history), "recording")
    server.interventions.record(recorder)


def _started(config: Config) -> Object:
    return {"profile": config.profile} | ({} if config.nodes is None else {"nodes": config.nodes})


def _written(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC), MICRO)
