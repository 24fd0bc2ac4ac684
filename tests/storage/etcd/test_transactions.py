"""The transactions that a store sends: only those shapes that kine accepts, which stores the keys of k3s in SQL.

kine (pkg/server/kv.go and those beside it) recognizes each transaction by its form, and refuses any other one:

    create   compare mod_revision of K = 0, success: put K, failure: read K
    update   compare mod_revision of K = N, success: put K, failure: read K
    delete   compare mod_revision of K = N, success: delete K, failure: read K
    compact  compare version of compact_rev_key = N, success: put it, failure: read it
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from noxu_storage.types import Conflict, Key

pytest.importorskip("noxu_storage.etcd.channel", reason="package: grpc")

from google.protobuf import text_format

from noxu_storage.etcd.layout import PlainLayout
from noxu_storage.etcd.messages import LEASE_GRANT, TXN, Message, Method
from noxu_storage.etcd.store import EtcdStore

KEY = Key("g/things", "default/", "a")


class Recorder:
    """Answers like an etcd in which every transaction fails, or succeeds and deletes nothing."""

    def __init__(self) -> None:
        self.sent: list[tuple[Method, Any]] = []
        self.succeeds = False

    async def call(self, call: Method, request: Any, **options: Any) -> Any:
        if isinstance(request, bytes):
            request = Message[call.request].FromString(request)
        self.sent.append((call, request))
        header = SimpleNamespace(revision=1)
        if call is LEASE_GRANT:
            return SimpleNamespace(ID=5)
        if call is TXN:
            answer = "response_delete_range" if self.succeeds else "response_range"
            found = Message["ResponseOp"](**{answer: {}})
            return SimpleNamespace(header=header, succeeded=self.succeeds, responses=[found])
        return SimpleNamespace(header=header, kvs=[], more=False)


@pytest.fixture
async def recorder() -> AsyncIterator[Recorder]:
    return Recorder()


@pytest.fixture
def store(recorder: Recorder) -> EtcdStore:
    return EtcdStore(recorder, PlainLayout("/p/"), {"g/events": 10})  # type: ignore[arg-type]


def shape(request: Any) -> str:
    return text_format.MessageToString(request, as_one_line=True).strip()


COMPARE = 'compare { target: 2 key: "/p/g/things/default/a" mod_revision: %d }'
FAILURE = 'failure { request_range { key: "/p/g/things/default/a" } }'
SHAPES = {
    "create": f'{COMPARE % 0} success {{ request_put {{ key: "/p/g/things/default/a" value: "v" }} }} {FAILURE}',
    "update": f'{COMPARE % 7} success {{ request_put {{ key: "/p/g/things/default/a" value: "v" }} }} {FAILURE}',
    "delete": f'{COMPARE % 7} success {{ request_delete_range {{ key: "/p/g/things/default/a" }} }} {FAILURE}',
}


@pytest.mark.parametrize("kind", SHAPES)
async def test_a_write_is_one_transaction_of_its_shape(kind: str, store: EtcdStore, recorder: Recorder) -> None:
    write = {
        "create": lambda: store.put(KEY, b"v", expected=0),
        "update": lambda: store.put(KEY, b"v", expected=7),
        "delete": lambda: store.delete(KEY, expected=7),
    }[kind]
    with pytest.raises(Conflict):
        await write()
    [(call, request)] = recorder.sent
    assert call is TXN
    assert shape(request) == SHAPES[kind]


async def test_a_compare_of_zero_is_sent_as_such(store: EtcdStore, recorder: Recorder) -> None:
    """In proto3 a zero in a oneof is sent: kine and etcd see which field is compared."""
    with pytest.raises(Conflict):
        await store.put(KEY, b"v", expected=0)
    assert recorder.sent[0][1].compare[0].WhichOneof("kind") == "mod_revision"


async def test_a_lease_is_part_of_the_put(store: EtcdStore, recorder: Recorder) -> None:
    with pytest.raises(Conflict):
        await store.put(KEY._replace(collection="g/events"), b"v", expected=0)
    (grant, granted), (txn, request) = recorder.sent
    assert (grant, txn) == (LEASE_GRANT, TXN)
    assert granted == Message["LeaseGrantRequest"](TTL=10)
    assert request.success[0].request_put.lease == 5


async def test_the_turn_to_compact_is_counted_in_a_transaction(store: EtcdStore, recorder: Recorder) -> None:
    await store.compact_in_turn(0)
    [(call, request)] = recorder.sent
    assert call is TXN
    assert shape(request) == (
        'compare { key: "compact_rev_key" version: 0 } '
        'success { request_put { key: "compact_rev_key" value: "0" } } '
        'failure { request_range { key: "compact_rev_key" } }'
    )


async def test_deleting_what_does_not_exist_is_a_conflict_where_it_succeeds(
    store: EtcdStore, recorder: Recorder
) -> None:
    """kine answers so."""
    recorder.succeeds = True
    with pytest.raises(Conflict):
        await store.delete(KEY, expected=7)
