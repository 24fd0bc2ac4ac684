"""Small recordings, written as lines: what plans are made of and runs are judged by."""

from __future__ import annotations

from collections import Counter
from typing import Any

from noxu.exploration.recording import Life, ObjectPlace, RecordedChange, RunRecording, Shown, StepResult
from noxu.values import Object

WIDGETS, CONFIGS, SECRETS, CLAIMS = "widgets.example.com", "configmaps", "secrets", "persistentvolumeclaims"
CLEAN_STEPS = 2


class Script:
    """Writes one after the other, from revision 10 on: `script.write("controller", "create", CONFIGS, "a", data={"n": "1"})`."""

    def __init__(self) -> None:
        self.changes: list[RecordedChange] = []
        self.there: dict[ObjectPlace, Object] = {}
        self.step = 1

    def write(
        self,
        author: str,
        verb: str,
        resource: str,
        name: str,
        /,
        *,
        subresource: str = "",
        why: list[tuple[str, int, str, str, str]] | None = None,
        uid: str = "",
        **fields: Any,
    ) -> RecordedChange:
        place, revision = ObjectPlace(resource, "default", name), 10 + len(self.changes)
        before = self.there.get(place)
        after: Object | None = None
        if verb != "delete":
            old = before or {"metadata": {"name": name, "namespace": "default", "uid": uid or f"uid-{revision}"}}
            metadata = {**old["metadata"], **fields.pop("metadata", {})}
            after = {**old, **fields, "metadata": metadata}
            self.there[place] = after
        else:
            self.there.pop(place, None)
        shown = tuple(Shown(how, at, event, ObjectPlace(kind, "default", of)) for how, at, event, kind, of in why or ())
        change = RecordedChange(revision, verb, subresource, place, author, before, after, shown, self.step)
        self.changes.append(change)
        return change

    def recording(self, **more: Any) -> RunRecording:
        requests = Counter(
            (change.verb, change.place.resource, 200) for change in self.changes if change.is_of_controller
        )
        watches = Counter(("watch", change.place.resource, 200) for change in self.changes)
        steps = [StepResult(title, 0.1) for title in ("start", *(f"step {n + 1}" for n in range(self.step)), "end")]
        given: dict[str, Any] = {
            "requests": [(*what, number) for what, number in (requests + watches).items()],
            "lives": [Life(0, None, planned=False)],
            "steps": steps,
            "output": "",
            "seconds": 1.0,
        }
        return RunRecording(self.changes, sorted(self.there.items()), **given | more)


def clean(token: str = "one") -> Script:
    """A Widget gets a ConfigMap and a Secret, then its size shrinks; `token` is what differs by chance."""
    script = Script()
    script.write("workload", "create", WIDGETS, "a", spec={"size": 2})
    script.write("controller", "create", CONFIGS, "a", data={"size": "2"}, why=[("watch", 10, "ADDED", WIDGETS, "a")])
    script.write("controller", "create", SECRETS, "a", data={"token": token})
    script.write("controller", "patch", WIDGETS, "a", subresource="status", status={"size": 2})
    script.step = 2
    script.write("workload", "patch", WIDGETS, "a", spec={"size": 1})
    script.write(
        "controller", "patch", WIDGETS, "a", subresource="status", status={"size": 1},
        why=[("watch", 14, "MODIFIED", WIDGETS, "a")],
    )  # fmt: skip
    return script
