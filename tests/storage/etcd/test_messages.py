"""Transactions in the wire format: the same as those that are made of messages."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.rows import rows

pytest.importorskip("google.protobuf", reason="package: google.protobuf")

from noxu_storage.etcd.messages import TARGET_MOD, Message, delete_operation, put_operation, transaction


def expected_transaction(key: bytes, revision: int, operation: Any) -> Any:
    return Message["TxnRequest"](
        compare=[Message["Compare"](target=TARGET_MOD, key=key, mod_revision=revision)],
        success=[operation],
        failure=[Message["RequestOp"](request_range=Message["RangeRequest"](key=key))],
    )


KEYS = [b"k", b"", b"/registry/" + b"x" * 300, b"\0\xff"]
REVISIONS = [0, 1, 127, 128, 2**40, 2**63 - 1]
PUTS = [(b"", 0), (b"v", 7), (b"v" * 127, 0), (b"v" * 128, 2**62), (b"v" * 20_000, 0)]
"""The value, and the lease."""


@rows("key, revision, put", product(KEYS, REVISIONS, PUTS))
def test_a_put(key: bytes, revision: int, put: tuple[bytes, int]) -> None:
    value, lease = put
    request = Message["RequestOp"](request_put=Message["PutRequest"](key=key, value=value, lease=lease))
    found = Message["TxnRequest"].FromString(transaction(key, revision, put_operation(key, value, lease)))
    assert found == expected_transaction(key, revision, request)
    assert found.compare[0].WhichOneof("kind") == "mod_revision", "also if it is 0: the key must not exist"


@rows("key, revision", product(KEYS, REVISIONS))
def test_a_deletion(key: bytes, revision: int) -> None:
    delete = Message["RequestOp"](request_delete_range=Message["DeleteRangeRequest"](key=key))
    found = Message["TxnRequest"].FromString(transaction(key, revision, delete_operation(key)))
    assert found == expected_transaction(key, revision, delete)


def test_the_example_of_the_docstring() -> None:
    encoded = "0a0710021a016b3007 120812060a016b120176 1a050a030a016b"
    assert transaction(b"k", 7, put_operation(b"k", b"v")) == bytes.fromhex(encoded)
