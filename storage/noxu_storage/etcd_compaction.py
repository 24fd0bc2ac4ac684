"""Compaction of etcd, a duty that all its users share.

etcd is compacted as a whole. All servers, upstream's too, count the turns in the version of one key outside of all prefixes,
whose value is the newest compacted revision: the first one to count a turn compacts, the others learn what has been compacted
(storage/etcd3/compact.go of k8s.io/apiserver):

    this server has seen version 3      if the version is 3, put 812: it is 4 now, and this server compacts to 812
    another one has seen version 3      if the version is 3, put 810: it is 4, with 812, which it remembers
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from noxu_storage.etcd_advice import advised
from noxu_storage.etcd_client import Client
from noxu_storage.etcd_messages import COMPACT, TARGET_VERSION, TXN, Message
from noxu_storage.etcd_past import COMPACTED
from noxu_storage.grpc_status import Lost, Refused
from noxu_storage.log import Log
from noxu_storage.types import FutureRevision, Revision, Unavailable

COMPACTION_KEY: Final = b"compact_rev_key"
FORBIDDEN: Final = "etcdserver: permission denied"
COUNT_TURNS: Final = (
    f"grant the user of --etcd-username a role that may read and write the key {COMPACTION_KEY.decode()}"
)
COMPACT_AS_ROOT: Final = (
    "newer versions of etcd let only the role root compact: grant it to the user of --etcd-username, "
    "or start etcd with --auto-compaction-retention"
)


class Compaction:
    """That of one store, whose log remembers what is compacted."""

    def __init__(self, client: Client, log: Log) -> None:
        self._client = client
        self._log = log
        self._turn = 0  # the version of COMPACTION_KEY that this server has seen

    async def compact(self, revision: Revision) -> None:
        """Raises FutureRevision, Unavailable."""
        if revision > self._log.revision:
            raise FutureRevision(self._log.revision)
        if revision <= self._log.compacted:
            return
        try:
            await self._client.call(COMPACT, Message["CompactionRequest"](revision=revision))
        except Refused as refused:
            if str(refused) != COMPACTED:
                raise _unavailable(refused, COMPACT_AS_ROOT) from None
        except Lost as lost:
            raise _unavailable(lost) from None
        self._log.compacted = max(self._log.compacted, revision)

    async def in_turn(self, revision: Revision) -> None:
        """Compact if it is this server's turn. Raises FutureRevision, Unavailable."""
        at = Message["Compare"](target=TARGET_VERSION, key=COMPACTION_KEY, version=self._turn)
        count_turn = Message["PutRequest"](key=COMPACTION_KEY, value=b"%d" % revision)
        read = Message["RangeRequest"](key=COMPACTION_KEY)
        request = Message["TxnRequest"](
            compare=[at],
            success=[Message["RequestOp"](request_put=count_turn)],
            failure=[Message["RequestOp"](request_range=read)],
        )
        try:
            response = await self._client.call(TXN, request)
        except (Lost, Refused) as error:
            raise _unavailable(error, COUNT_TURNS) from None
        if response.succeeded:
            self._turn += 1
            await self.compact(revision)
            return
        for item in response.responses[0].response_range.kvs:
            self._turn = item.version
            with suppress(ValueError):
                self._log.compacted = max(self._log.compacted, min(int(item.value), self._log.revision))


def _unavailable(error: Lost | Refused, if_forbidden: str = "") -> Unavailable:
    text = str(error)
    return Unavailable(f"etcd: {text} ({if_forbidden})" if text == FORBIDDEN else f"etcd: {advised(text)}")
