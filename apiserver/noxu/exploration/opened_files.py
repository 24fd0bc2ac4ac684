"""A file that is opened in the console: the recording of a server (`noxu serve --record`), or `explore-1.noxu` of an exploration.

    noxu open run.noxu                      reads it from the disk
    POST /_noxu/console/open                what is dropped on a page: {"name": "run.noxu", "content": "H4sI…"}

What a page sends is in base64, and compressed, so that ten times the limit of a body fits into one. The answer is what a page asks a
server, by its paths (`noxu.console.recorded_answers`); nothing is kept. What a finding is compared with, a run without its plan,
is in its file.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import zlib
from pathlib import PurePath
from typing import Final

from noxu.api.errors import ApiError
from noxu.console.recorded_answers import answers, two_runs
from noxu.control.arguments import TEXT, Argument
from noxu.control.calls import ControlCall, ControlRoute
from noxu.exploration.opened import moments, recording_of
from noxu.exploration.recording import MIB, RunFile, from_bytes
from noxu.recordings import lines
from noxu.recordings.lines import ServerRecording
from noxu.registry.offload import offload
from noxu.values import Object

PATH: Final = "/_noxu/console/open"
MAX_SENT: Final = 64 * MIB  # of a recording that a page sends, when it is no longer compressed
GZIP: Final = b"\x1f\x8b"
CLEAN: Final = "a run without the plan"


def page_answers(content: bytes, name: str) -> Object:
    """All that a page asks about a file. Raises ValueError, with a sentence."""
    if not _is_of_exploration(content):
        return answers(read(content, name))
    file = _run_file(content, name)
    run = recording_of(file.plan, file.run)
    found = (
        answers(run)
        if file.clean is None
        else two_runs(recording_of({}, file.clean), run, (CLEAN, PurePath(name).name))
    )
    return _with_plan(found, file)


def read(content: bytes, name: str) -> ServerRecording:
    """The recording in a file; a run becomes one. Raises ValueError, with a sentence."""
    if _is_of_exploration(content):
        file = _run_file(content, name)
        return recording_of(file.plan, file.run)
    return lines.parse(decompressed(content, name), name)


def _is_of_exploration(content: bytes) -> bool:
    """Whether a file is that of a run; else it is lines, which a page compresses, too."""
    return content.startswith(GZIP) and _beginning(content).startswith(b'{"format":')


def _beginning(content: bytes) -> bytes:
    try:
        with gzip.open(io.BytesIO(content)) as file:
            return file.read(20)
    except (OSError, EOFError, zlib.error):
        return b""


def decompressed(content: bytes, name: str) -> bytes:
    """The content of a file that may be compressed. Raises ValueError."""
    if not content.startswith(GZIP):
        return content
    try:
        with gzip.open(io.BytesIO(content)) as file:
            found = file.read(MAX_SENT + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{name} is damaged: {error}") from None
    if len(found) > MAX_SENT:
        raise ValueError(
            f"{name} has more than {MAX_SENT // MIB} MiB: `noxu open {name}` shows it, if it is not compressed"
        )
    return found


def _run_file(content: bytes, name: str) -> RunFile:
    try:
        return from_bytes(content)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


# -- the plan ----------------------------------------------------------------------------------------------------------


def _with_plan(found: Object, file: RunFile) -> Object:
    """Answers with what was done to a run: the plan and the finding beside the comparison, its moments among the marks."""
    about = {"plan": file.plan, "finding": file.finding, "output": file.run.output[-MAX_OUTPUT:]}
    runs = {**found.get("/_noxu/console/runs", {}), **about}
    timeline = found["/_noxu/console/timeline"]
    marks = [*timeline["marks"], *_moment_marks(timeline["marks"], file)]
    marks.sort(key=lambda mark: mark["at"])
    return {**found, "/_noxu/console/runs": runs, "/_noxu/console/timeline": {**timeline, "marks": marks}}


MAX_OUTPUT: Final = 4_000  # characters of what the program has said, the newest
_BESIDE: Final = 0.01  # seconds between a write and a moment beside it: less than between two writes


def _moment_marks(marks: list[Object], file: RunFile) -> list[Object]:
    by_revision = {mark["revision"]: mark for mark in marks if "revision" in mark}
    last = max((mark["at"] for mark in marks), default=0.0)
    found: list[Object] = []
    for number, moment in enumerate(moments(file.plan, file.run), 1):
        beside = by_revision.get(moment["revision"])
        at = last if beside is None else beside["at"]
        found.append(
            {
                "key": f"plan-{number}",
                "at": at + (-_BESIDE if moment["before"] and beside else _BESIDE) + number / 100_000,
                "lane": "the plan",
                "what": "plan",
                "verb": moment["text"],
                "subresource": "",
                "resource": "",
                "namespace": "",
                "name": "",
                "because": [moment["revision"]] if beside is not None and not moment["before"] else [],
            }
        )
    return found


# -- the call ----------------------------------------------------------------------------------------------------------


async def open_file(call: ControlCall) -> Object:
    """What a page asks about the file that it sends. Raises ApiError Invalid."""
    name, content = call.body["name"], call.body["content"]
    try:
        return await offload(len(content), opened, name, content)
    except ValueError as error:
        raise ApiError(422, str(error), "Invalid") from None


def opened(name: str, content: str) -> Object:
    """The answers about a file in base64. Raises ValueError."""
    try:
        return page_answers(base64.b64decode(content, validate=True), name)
    except binascii.Error:
        raise ValueError(f"{name} has not arrived as base64") from None


ROUTES: Final = (
    ControlRoute(
        "POST",
        PATH,
        open_file,
        "What a page asks about a recording.",
        body={
            "name": Argument(TEXT, "that of the file", required=True),
            "content": Argument(TEXT, "the file in base64, which may be compressed by gzip", required=True),
        },
    ),
)
