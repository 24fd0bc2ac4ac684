"""The messages of etcd's API v3 that a store needs, and the calls that take and return them.

MESSAGES describes them in our own words: field, number, type. From it come protobuf classes at run time, so there is no
generated code, and encoding and decoding run in C (docs/decisions). Fields that are not described are skipped when they are
read. A type is a scalar of protobuf, or a message of the table; `*` marks a repeated field, `|` a member of the oneof. The
numbers are those of etcd's published API (etcdserverpb/rpc.proto, mvccpb/kv.proto).

This module requires the package protobuf: the extra `etcd`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE: Final = "noxu.etcd"  # names are not part of the wire format
_TYPES: Final = {
    "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
    "uint64": descriptor_pb2.FieldDescriptorProto.TYPE_UINT64,
    "uint32": descriptor_pb2.FieldDescriptorProto.TYPE_UINT32,
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,  # also of enumerations, whose values are below
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
}

EQUAL: Final = 0  # results of a Compare
TARGET_VERSION: Final = 0  # targets of a Compare
TARGET_MOD: Final = 2
DELETED: Final = 1  # the type of an Event
ALARMS: Final = {1: "NOSPACE", 2: "CORRUPT"}  # of an AlarmMember

MESSAGES: Final[dict[str, str]] = {
    "Header": "revision 3 int64",
    "KeyValue": "key 1 bytes, create_revision 2 int64, mod_revision 3 int64, version 4 int64, value 5 bytes, lease 6 int64",
    "Event": "type 1 int32, kv 2 KeyValue, prev_kv 3 KeyValue",
    "RangeRequest": "key 1 bytes, range_end 2 bytes, limit 3 int64, revision 4 int64, keys_only 8 bool, count_only 9 bool",
    "RangeResponse": "header 1 Header, kvs 2 KeyValue*, more 3 bool, count 4 int64",
    "PutRequest": "key 1 bytes, value 2 bytes, lease 3 int64",
    "PutResponse": "header 1 Header",
    "DeleteRangeRequest": "key 1 bytes, range_end 2 bytes",
    "DeleteRangeResponse": "header 1 Header, deleted 2 int64",
    "RequestOp": "request_range 1 RangeRequest|, request_put 2 PutRequest|, request_delete_range 3 DeleteRangeRequest|",
    "ResponseOp": "response_range 1 RangeResponse|, response_put 2 PutResponse|, response_delete_range 3 DeleteRangeResponse|",
    "Compare": "result 1 int32, target 2 int32, key 3 bytes, version 4 int64|, mod_revision 6 int64|",
    "TxnRequest": "compare 1 Compare*, success 2 RequestOp*, failure 3 RequestOp*",
    "TxnResponse": "header 1 Header, succeeded 2 bool, responses 3 ResponseOp*",
    "CompactionRequest": "revision 1 int64, physical 2 bool",
    "CompactionResponse": "header 1 Header",
    "WatchCreateRequest": "key 1 bytes, range_end 2 bytes, start_revision 3 int64, progress_notify 4 bool, prev_kv 6 bool, "
    "fragment 8 bool",
    "WatchProgressRequest": "",
    "WatchRequest": "create_request 1 WatchCreateRequest|, progress_request 3 WatchProgressRequest|",
    "WatchResponse": "header 1 Header, watch_id 2 int64, created 3 bool, canceled 4 bool, compact_revision 5 int64, "
    "cancel_reason 6 string, fragment 7 bool, events 11 Event*",
    "AuthenticateRequest": "name 1 string, password 2 string",
    "AuthenticateResponse": "header 1 Header, token 2 string",
    "LeaseGrantRequest": "TTL 1 int64, ID 2 int64",
    "LeaseGrantResponse": "header 1 Header, ID 2 int64, TTL 3 int64, error 4 string",
    "LeaseRevokeRequest": "ID 1 int64",
    "LeaseRevokeResponse": "header 1 Header",
    "StatusRequest": "",
    "StatusResponse": "header 1 Header, version 2 string, dbSize 3 int64, leader 4 uint64",
    "HashKVRequest": "revision 1 int64",
    "HashKVResponse": "header 1 Header, hash 2 uint32, compact_revision 3 int64",
    "AlarmRequest": "",
    "AlarmMember": "memberID 1 uint64, alarm 2 int32",
    "AlarmResponse": "header 1 Header, alarms 2 AlarmMember*",
}  # fmt: skip


class Method(NamedTuple):
    """A method of etcd's API."""

    path: str
    request: str
    response: str


RANGE: Final = Method("/etcdserverpb.KV/Range", "RangeRequest", "RangeResponse")
PUT: Final = Method("/etcdserverpb.KV/Put", "PutRequest", "PutResponse")
TXN: Final = Method("/etcdserverpb.KV/Txn", "TxnRequest", "TxnResponse")
COMPACT: Final = Method("/etcdserverpb.KV/Compact", "CompactionRequest", "CompactionResponse")
WATCH: Final = Method("/etcdserverpb.Watch/Watch", "WatchRequest", "WatchResponse")
LEASE_GRANT: Final = Method("/etcdserverpb.Lease/LeaseGrant", "LeaseGrantRequest", "LeaseGrantResponse")
LEASE_REVOKE: Final = Method("/etcdserverpb.Lease/LeaseRevoke", "LeaseRevokeRequest", "LeaseRevokeResponse")
AUTHENTICATE: Final = Method("/etcdserverpb.Auth/Authenticate", "AuthenticateRequest", "AuthenticateResponse")
STATUS: Final = Method("/etcdserverpb.Maintenance/Status", "StatusRequest", "StatusResponse")
HASH_KV: Final = Method("/etcdserverpb.Maintenance/HashKV", "HashKVRequest", "HashKVResponse")
ALARM: Final = Method("/etcdserverpb.Maintenance/Alarm", "AlarmRequest", "AlarmResponse")


def _described(messages: dict[str, str]) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="noxu/etcd.proto", package=PACKAGE, syntax="proto3")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for text in filter(None, fields.split(", ")):
            field, number, kind = text.split()
            added = message.field.add(name=field, number=int(number))
            added.label = added.LABEL_REPEATED if kind.endswith("*") else added.LABEL_OPTIONAL
            if kind.endswith("|"):
                if not message.oneof_decl:
                    message.oneof_decl.add(name="kind")
                added.oneof_index = 0
            kind = kind.rstrip("*|")
            if kind in _TYPES:
                added.type = _TYPES[kind]
            else:
                added.type, added.type_name = added.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
    return file


def _classes(messages: dict[str, str]) -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()  # its own: other packages may describe etcd's messages, too
    pool.Add(_described(messages))
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in messages}


Message: Final[dict[str, Any]] = _classes(MESSAGES)
"""The classes by name."""


# The transactions of writes, in the wire format: made of bytes, they take half the time of objects.


def put_operation(key: bytes, value: bytes, lease: int = 0) -> bytes:
    """A RequestOp that puts a value."""
    put = _field(0x0A, key) + _field(0x12, value)
    return _field(0x12, put + b"\x18" + _varint(lease) if lease else put)


def delete_operation(key: bytes) -> bytes:
    """A RequestOp that deletes a key."""
    return _field(0x1A, _field(0x0A, key))


def transaction(key: bytes, expected: int, operation: bytes) -> bytes:
    """A TxnRequest: if the key was last modified at revision `expected` (0: if it does not exist), do it, else read the key.

    transaction(b"k", 7, put_operation(b"k", b"v")) consists of

        0a 07  10 02  1a 01 k  30 07            compare: the target MOD, the key, the mod_revision
        12 08  12 06  0a 01 k  12 01 v          success: a PutRequest with key and value
        1a 05  0a 03  0a 01 k                   failure: a RangeRequest with the key
    """
    at = _field(0x0A, key)
    compare = b"\x10\x02" + _field(0x1A, key) + b"\x30" + _varint(expected)
    return _field(0x0A, compare) + _field(0x12, operation) + _field(0x1A, _field(0x0A, at))


def _field(tag: int, content: bytes) -> bytes:
    """A field that is bytes or a message: its tag, length and content."""
    size = len(content)
    return (bytes((tag, size)) if size < 0x80 else bytes((tag,)) + _varint(size)) + content


def _varint(number: int) -> bytes:
    """Seven bits in each byte, the lowest first; all but the last one have the highest bit set."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
