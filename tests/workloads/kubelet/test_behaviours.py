"""What `noxu.dev/simulate` says."""

from __future__ import annotations

import re

import pytest

from noxu.workloads.kubelet.behaviours import ContainerBehaviour, PodBehaviour, parse
from tests.rows import rows

CRASHES = ContainerBehaviour(exit_code=1)


@rows(
    "text, expected",
    [
        ("", PodBehaviour()),
        ("ready", PodBehaviour(ContainerBehaviour(backs_off=False, ready_after=0.0))),
        ("crash-loop", PodBehaviour(CRASHES)),
        ("exit=3", PodBehaviour(ContainerBehaviour(exit_code=3))),
        ("exit=3@1m30s", PodBehaviour(ContainerBehaviour(exit_code=3, exit_after=90.0))),
        (
            "slow-ready=30s, exit=0@1h",
            PodBehaviour(ContainerBehaviour(exit_code=0, exit_after=3600.0, ready_after=30.0)),
        ),
        ("evicted", PodBehaviour(is_evicted=True)),
        ("node-lost,never-ready", PodBehaviour(ContainerBehaviour(is_ever_ready=False), is_lost=True)),
        ("proxy:crash-loop", PodBehaviour(containers={"proxy": CRASHES})),
        (
            "proxy:crash-loop,slow-ready=5s",
            PodBehaviour(ContainerBehaviour(ready_after=5.0), {"proxy": CRASHES._replace(ready_after=5.0)}),
        ),
    ],
)
def test_a_behaviour_is_read(text: str, expected: PodBehaviour) -> None:
    assert parse(text) == expected


@rows(
    "text, message",
    [
        ("crashloop", '"crashloop" is not known: there are image-pull-error, crash-loop'),
        ("exit", '"exit": it has an exit code from 0 to 255 and may have a time: exit=3@10s; it is written exit=3@10s'),
        ("exit=256", "it has an exit code from 0 to 255"),
        ("exit=1@soon", '"exit=1@soon": '),
        ("slow-ready", "it is written slow-ready=30s"),
        ("oom=1", '"oom=1": it has no value; it is written oom'),
        ("c:evicted", '"c:evicted": it is about the whole pod, so it names no container'),
    ],
)
def test_what_is_not_understood_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse(text)
