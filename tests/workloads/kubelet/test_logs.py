"""Why a container has no log, as kubectl says it."""

from __future__ import annotations

from noxu.values import Object
from noxu.workloads.kubelet.logs import missing
from tests.rows import rows

RUNNING, ENDED = {"running": {}}, {"terminated": {"exitCode": 1}}
START = 'container "c" in pod "web" is waiting to start: '
NOT_BEFORE = 'previous terminated container "c" in pod "web" not found'
NEVER = 'container "c" in pod "web" is not available'


def waiting(reason: str) -> Object:
    return {"state": {"waiting": {"reason": reason}}}


@rows(
    ("situation", "status", "expected"),
    [
        ("it runs", {"state": RUNNING}, ("", NOT_BEFORE)),
        ("it has ended", {"state": ENDED}, ("", NOT_BEFORE)),
        ("it runs again", {"state": RUNNING, "lastState": ENDED}, ("", "")),
        ("it waits to run again", {**waiting("CrashLoopBackOff"), "lastState": ENDED}, ("", "")),
        ("it is created", waiting("ContainerCreating"), (f"{START}ContainerCreating", NOT_BEFORE)),
        ("its image is not there", waiting("ErrImagePull"), (f"{START}image can't be pulled", NOT_BEFORE)),
        (
            "it waits for its image",
            waiting("ImagePullBackOff"),
            (f"{START}trying and failing to pull image", NOT_BEFORE),
        ),
        ("it never was", None, (NEVER, NEVER)),
    ],
)
def test_there_is_no_log(situation: str, status: Object | None, expected: tuple[str, str]) -> None:
    pod: Object = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c"}]}}
    if status is not None:
        pod["status"] = {"containerStatuses": [{"name": "c", **status}]}
    assert (missing(pod, "", previous=False), missing(pod, "", previous=True)) == expected
