"""`noxu replay`: a recording, sent again to a server (`noxu.recordings.replaying`).

Without --server and --kubeconfig the server is a new one in this process, with the profile and the version of Kubernetes of the one that was recorded.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
from collections.abc import Iterator
from typing import Final

from noxu.commands import calls
from noxu.commands.api_client import RequestError, endpoint_from_options, ssl_context
from noxu.recordings import lines
from noxu.recordings.lines import ServerRecording
from noxu.recordings.replaying import Replay, ReplayTarget
from noxu.testing.handle import Noxu

SAME: Final = "answered as recorded"


def run(options: argparse.Namespace) -> int:
    """Exit status 0; 1: there are differences, the recording cannot be read, or there is no server."""
    try:
        recording = lines.read(options.file)
        with _target(options, recording) as target:
            return _replay(options, recording, target)
    except OSError as error:
        calls.complain(f"{error.filename or 'the server'}: {error.strerror or error}")
    except (
        ValueError,
        RequestError,
        http.client.HTTPException,
    ) as error:  # no recording, or of a server that cannot be
        calls.complain(str(error) or type(error).__name__)
    return 1


@contextlib.contextmanager
def _target(options: argparse.Namespace, recording: ServerRecording) -> Iterator[ReplayTarget]:
    """The server that the options name. Raises RequestError."""
    if options.server or options.kubeconfig or options.context:
        endpoint = endpoint_from_options(options)
        tls = ssl_context(endpoint) if endpoint.url.startswith("https") else None
        with contextlib.closing(ReplayTarget(endpoint.url, tls, endpoint.authorization)) as target:
            yield target
        return
    with Noxu(**recording.server) as server, contextlib.closing(ReplayTarget(server.url)) as target:
        yield target


def _replay(options: argparse.Namespace, recording: ServerRecording, target: ReplayTarget) -> int:
    replay = Replay(recording, target, options.ignore, options.wait)
    number = 0
    for step in replay.run():
        number += 1
        print(step)
    if not options.quiet:
        cut = "; the last line of the recording is not whole, and was not read" if recording.cut else ""
        print(f"{replay.steps} steps, {replay.steps - number} {SAME}, {number} otherwise{cut}")
    return 1 if number else 0
