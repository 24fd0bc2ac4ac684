"""Copies are identical: of any states, between files and etcd."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Final
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noxu.commands.copy import copy
from noxu.config import Etcd
from noxu_storage.check import check
from noxu_storage.snapshot import snapshot
from noxu_storage.state_file import new_file
from noxu_storage.types import EVERYTHING, Key, KeyValue, no_progress
from tests.etcd_server import EtcdServer

BUILT_IN: Final = st.sampled_from(
    ["/pods", "/services", "/nodes", "apps/deployments", "networking.k8s.io/ingresses", "events.k8s.io/events"]
)
CUSTOM: Final = st.sampled_from(
    ["example.com/widgets", "example.com/pods", "apiregistration.k8s.io/apiservices", "odd", "a/b/c", ""]
)
NAMES: Final = st.text("ab-.:/%é\0", max_size=4)
NAMESPACES: Final = st.sampled_from(["", "default/", "kube-system/"])
KEYS: Final = st.one_of(st.builds(Key, BUILT_IN, NAMESPACES, NAMES), st.builds(Key, CUSTOM, NAMESPACES | NAMES, NAMES))
VALUES: Final = st.one_of(
    st.binary(max_size=20),
    st.sampled_from([b"{}", b"{}\n", b"{\n", b"\n", b"k8s\0", b'{"kind":"Widget"}', b'{"a":"\xc3\xbc"}\n\n']),
)


@st.composite
def contents(draw: st.DrawFn) -> list[KeyValue]:
    """States with revisions of their own, in the order of their keys."""
    values = draw(st.dictionaries(KEYS, VALUES, max_size=12))
    revisions = draw(st.permutations(range(2, 2 + len(values))))
    return sorted(KeyValue(key, value, at) for (key, value), at in zip(values.items(), revisions, strict=True))


def written(path: Path, states: list[KeyValue], revision: int) -> Path:
    with new_file(path, revision) as writer:
        writer.write(states)
    return path


def read(path: Path) -> list[KeyValue]:
    with snapshot(path) as found:
        return list(found.values(EVERYTHING))


@given(contents(), st.integers(20, 30))
@settings(deadline=None)
def test_a_copy_of_a_file_has_the_same_states_at_the_same_revisions(states: list[KeyValue], revision: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        source, target = written(Path(directory, "a.db"), states, revision), Path(directory, "b.db")
        outcome = asyncio.run(copy(source, target, merge=False, show=no_progress))
        assert (outcome.revision, outcome.objects, outcome.refused) == (revision, len(states), {})
        assert read(target) == states
        assert check(target).problems == []
        assert check(target).revision == revision


@given(contents().filter(bool))  # a prefix without objects is refused
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_goes_through_etcd_comes_back(etcd: EtcdServer, states: list[KeyValue]) -> None:
    place = Etcd((etcd.url,), f"/registry/{uuid4()}")

    async def there_and_back(source: Path, target: Path) -> None:
        outcome = await copy(source, place, merge=False, show=no_progress)
        assert (outcome.objects, outcome.refused) == (len(states), {})
        outcome = await copy(place, target, merge=False, show=no_progress)
        assert (outcome.objects, outcome.refused) == (len(states), {})

    with tempfile.TemporaryDirectory() as directory:
        source, target = written(Path(directory, "a.db"), states, 30), Path(directory, "b.db")
        asyncio.run(there_and_back(source, target))
        assert [(state.key, state.value) for state in read(target)] == [(state.key, state.value) for state in states]
        assert check(target).problems == []
