"""What the writes of the server's own controllers follow from."""

from __future__ import annotations

from typing import Any, cast

from noxu.api import codec
from noxu.console import controller_causes
from noxu.console.controller_causes import ControllerCauses
from noxu.registry.served_resources import LiveResources
from noxu_storage.types import Event, Key, KeyValue
from tests.rows import rows


class Kind:
    """A resource, as far as a key needs it; and all that is served."""

    namespaced = True

    def __init__(self, name: str = "") -> None:
        self.collection = name
        self.current = self

    def find_kind(self, _api_version: str, kind: str) -> Kind | None:
        return None if kind == "Unknown" else Kind(kind)


class Log:
    """Events one after the other."""

    def __init__(self) -> None:
        self.causes = ControllerCauses(cast(LiveResources, Kind()))
        self.revision = 0
        self.there: dict[Key, KeyValue] = {}

    def write(
        self, kind: str, name: str, *owners: tuple[str, str], deletes: bool = False, client: bool = False
    ) -> list[int]:
        self.revision += 1
        key = Key(kind, "default/", name)
        references = [{"apiVersion": "v1", "kind": of, "name": each} for of, each in owners]
        value = codec.encode(
            {"metadata": {"name": name, "namespace": "default", "ownerReferences": references}}, sort_keys=False
        )
        event = Event(key, self.revision, None if deletes else value, self.there.pop(key, None))
        self.there[key] = KeyValue(key, value, self.revision)
        self.causes.newest[key] = self.revision
        found = [] if client else self.causes.causes(event)
        self.causes.forget()
        return found


def test_a_rollout_is_one_story() -> None:
    log = Log()
    web, set_ = ("Deployment", "web"), ("ReplicaSet", "web-1")
    assert log.write(*web, client=True) == []  # 1: a client's, which its watches explain
    assert log.write(*set_, web) == [1]
    assert log.write("Pod", "web-1-a", set_) == [2]
    assert log.write("Pod", "web-1-a", set_) == [3]  # 4: by the scheduler
    assert log.write(*set_, web) == [4, 2]  # 5: its status counts the pod
    assert log.write(*web) == [5, 1]
    assert log.write(*web) == [6]  # what it owns is older
    assert log.write(*set_, web, deletes=True) == [5]


@rows(
    "owners",
    [[], [("Unknown", "a")], [("Deployment", "never-seen")]],
)
def test_without_a_known_owner_there_is_no_cause(owners: list[tuple[str, str]]) -> None:
    assert Log().write("Pod", "a", *owners) == []


def test_what_cannot_be_read_has_no_owners() -> None:
    causes = ControllerCauses(cast(LiveResources, Kind()))
    for stored in (b"{", b"[]", b'{"metadata": 1}', b'{"metadata": {"ownerReferences": [1]}}', b""):
        assert causes.causes(Event(Key("Pod", "", "a"), 1, stored, None)) == []


def test_the_objects_that_are_known_are_limited(monkeypatch: Any) -> None:
    monkeypatch.setattr(controller_causes, "MAX_KNOWN", 2)
    log = Log()
    for name in ("a", "b", "c"):
        log.write("ReplicaSet", name, client=True)
    assert [log.write("Pod", name, ("ReplicaSet", name)) for name in ("c", "a")] == [[3], []]
