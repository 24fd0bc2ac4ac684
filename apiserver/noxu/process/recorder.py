"""The recording of a server (`noxu serve --record FILE`): from the end of its start until it stops.

A server that is restarted in its process goes on with the file; another process makes it anew. Imported when there is one.
"""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from noxu import releases
from noxu.config import Config, StartError, own_version
from noxu.control_plane import in_background
from noxu.features import GATES, of_release
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
        content = path.read_bytes() if server.is_restart and path.exists() else b""
        whole = content.rfind(b"\n") + 1  # the last line is not, if the disk was full
        file = lines.RecordingFile(path, kept=whole)
        began, recorded, before = time.time(), plane.store.revision, 0
        if whole:
            earlier = lines.parse(content[:whole], str(path))
            before = len(earlier.lines)  # there are no more steps than lines
            began = datetime.fromisoformat(earlier.began).timestamp()
            recorded = max((write["revision"] for write in earlier.writes), default=earlier.revision)
        else:
            file.add(lines.header(own_version(), _written(began), plane.store.revision, _started(server.config)))
    except (OSError, lines.NoRecording) as error:
        raise StartError(f"--record {path}: {getattr(error, 'strerror', '') or error}") from None
    recorder = ConversationRecorder(file, began, before, recorded)
    closing.push_async_callback(partial(recorder.finish, plane, history))
    if not whole:
        await recorder.add_stored(plane)
    await in_background(closing, recorder.follow(plane, history), "recording")
    server.interventions.record(recorder)


def _started(config: Config) -> Object:
    """As arguments of `Noxu`: what its answers depend on."""
    features = config.features
    started: Object = {"profile": config.profile, "kubernetes": releases.named(features.release)}
    if config.nodes is not None:
        started["nodes"] = config.nodes
    usual = of_release(features.release)
    started["gates"] = {
        gate: getattr(features, name) for gate, name in GATES.items() if getattr(features, name) != getattr(usual, name)
    }
    return started


def _written(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC), MICRO)
