"""Verify the keys of etcd under a prefix: `noxu check --etcd-servers`. It reads and reports, and changes nothing.

etcd verifies its own file: its log and its pages have checksums, and a member that finds damage raises an alarm. This
verifies what etcd cannot know, at one revision: every key is one that the store would write, and its value passes the
check of the caller. Of etcd itself it reports alarms and, of several members, those whose hash of all keys differs from
the others'. Other programs may keep keys of other forms under the prefix: they are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from noxu_storage.check import Problem, Verify
from noxu_storage.etcd import state as etcd_state
from noxu_storage.etcd.channel import NO_TLS, TlsFiles
from noxu_storage.etcd.client import EtcdClient, EtcdUser
from noxu_storage.etcd.errors import CallLost, CallRefused, advised
from noxu_storage.etcd.history import BARRIER, COMPACTION_KEY, COPYING, INCOMPLETE, Past
from noxu_storage.etcd.layout import Layout
from noxu_storage.etcd.messages import ALARM, ALARMS, HASH_KV, RANGE, Message
from noxu_storage.types import KeyValue, Progress, Revision, Unavailable, no_progress

ETCD: Final = "etcd"


class EtcdReport(NamedTuple):
    """`keys` is the number of keys of the store, `others` that of other keys under the prefix. `remarks` are no problems."""

    versions: Sequence[str]
    revision: Revision
    compacted: Revision
    keys: int
    others: int
    problems: Sequence[Problem]
    remarks: Sequence[str]


async def check(
    servers: Sequence[str],
    layout: Layout,
    tls: TlsFiles = NO_TLS,
    user: EtcdUser | None = None,
    *,
    verify: Verify,
    progress: Progress = no_progress,
) -> EtcdReport:
    """Raises OpenError, Unavailable."""
    problems: list[Problem] = []
    remarks: list[str] = []
    keys = others = 0
    async with etcd_state.opened(servers, layout, tls, user, incomplete=True) as snapshot:
        client = snapshot.client
        async for page in snapshot.pages(progress):
            for item in page:
                state = snapshot.state(item)
                if state is not None:
                    keys += 1
                    problems += [
                        Problem(text, state.revision, state.key) for text in _wrong(item, state, snapshot, verify)
                    ]
                elif item.key == layout.prefix + COPYING:
                    problems.append(Problem(INCOMPLETE, store=ETCD))
                elif item.key != layout.prefix + BARRIER:
                    others += 1
        problems += await _compaction_key(client, snapshot.revision)
        problems += await _alarms(client, remarks)
        problems += await _members(client, servers, snapshot.revision, remarks)
        try:
            compacted = await Past(client, layout).compacted(snapshot.revision)
        except (CallLost, CallRefused) as error:
            raise Unavailable(f"etcd: {advised(str(error))}") from None
        versions = sorted({version for version in await client.versions() if version})
        return EtcdReport(versions, snapshot.revision, compacted, keys, others, problems, remarks)


def _wrong(item: Any, state: KeyValue, snapshot: etcd_state.EtcdState, verify: Verify) -> list[str]:
    texts = []
    expected = snapshot.layout.key(state.key)
    if item.key != expected:
        texts.append(f"is at the key {_text(item.key)}, and belongs at {_text(expected)}")
    if not 0 < item.create_revision <= item.mod_revision <= snapshot.revision:
        texts.append(f"was created at revision {item.create_revision}, read at {snapshot.revision}")
    if why := verify(state):
        texts.append(why)
    return texts


async def _compaction_key(client: EtcdClient, revision: Revision) -> list[Problem]:
    """Its value is the revision to which the servers have compacted: they would compact the future, too."""
    response = await etcd_state.repeated(client, RANGE, Message["RangeRequest"](key=COMPACTION_KEY))
    for item in response.kvs:
        if not item.value.isdigit() or int(item.value) > max(revision, response.header.revision):
            name, value = COMPACTION_KEY.decode(), _text(item.value)
            return [Problem(f"the key {name} has the value {value}, which is no revision of etcd", store=ETCD)]
    return []


async def _alarms(client: EtcdClient, remarks: list[str]) -> list[Problem]:
    try:
        response = await client.call(ALARM, Message["AlarmRequest"]())
    except (CallLost, CallRefused) as error:
        remarks.append(f"alarms of etcd are not known: {error}")
        return []
    return [
        Problem(f"member {member.memberID:x} has the alarm {ALARMS.get(member.alarm, member.alarm)}", store=ETCD)
        for member in response.alarms
    ]


async def _members(client: EtcdClient, servers: Sequence[str], revision: Revision, remarks: list[str]) -> list[Problem]:
    """The members whose keys differ from those of most. Members that are compacted to another revision cannot be compared."""
    if len(servers) == 1:
        return []
    hashes: dict[str, tuple[int, int]] = {}
    for server, answer in zip(
        servers, await client.ask_each(HASH_KV, Message["HashKVRequest"](revision=revision)), strict=True
    ):
        if isinstance(answer, Exception):
            remarks.append(f"{server} is not compared with the other members: {answer}")
        else:
            hashes[server] = answer.compact_revision, answer.hash
    if not hashes:
        return []
    (compacted, usual), _ = Counter(hashes.values()).most_common(1)[0]
    problems = []
    for server, (at, hashed) in hashes.items():
        if at != compacted:
            remarks.append(f"{server} is not compared with the other members: it was just compacted; check again")
        elif hashed != usual:
            problems.append(Problem(f"{server} has other keys or values than the other members", store=ETCD))
    return problems


def _text(key: bytes) -> str:
    return key.decode("utf-8", "backslashreplace")
