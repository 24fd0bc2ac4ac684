"""What the server of a run knows of each write: who has made it, and what its client had been shown before."""

from __future__ import annotations

from noxu.exploration.recording import CONTROLLER
from noxu.exploration.server import ExploredServer

SAID = {
    "apiVersion": "v1", "kind": "Event", "metadata": {"name": "said", "namespace": "default"},
    "involvedObject": {"kind": "ConfigMap", "name": "wanted", "namespace": "default"}, "type": "Normal", "reason": "Seen",
}  # fmt: skip


def config(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def test_an_event_between_a_state_and_what_follows_from_it_hides_no_cause() -> None:
    with ExploredServer(history="all") as server:
        begins = server.revision
        server.create(config("wanted"))
        controller = server.user(CONTROLLER, ["system:masters"])
        controller.get("configmaps", "wanted")
        controller.create(SAID)
        controller.create(config("made"))
        wanted, made = server.changes(begins, [])
    assert [change.place.name for change in (wanted, made)] == ["wanted", "made"]
    assert [(shown.how, shown.place.name) for shown in made.why] == [("get", "wanted")]
