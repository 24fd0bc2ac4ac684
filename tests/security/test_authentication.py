"""Authentication at one of several servers with the same store, which lags behind the others."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from multidict import CIMultiDict

from noxu.api.errors import ApiError
from noxu.control_plane import ControlPlane
from noxu.manifests import loading
from noxu.registry.access import User
from noxu.registry.stored_object import key_of
from noxu.security.credentials import Credentials
from noxu.security.tokens import Bound
from noxu.values import Object
from noxu_storage.memory import MemoryStore
from noxu_storage.types import KeyValue, Unavailable
from tests.clocks import ManualClock
from tests.security.planes import ACCOUNT, POD, SECRET, create, delete, plane_with_account, reference


class LaggingStore(MemoryStore):
    """`missed` are the writes of other servers that it does not show before it catches up."""

    shared = True

    def __init__(self) -> None:
        super().__init__()
        self.missed: list[KeyValue] = []
        self.questions = 0
        self.is_reachable = True

    async def catch_up(self) -> None:
        self.questions += 1
        if not self.is_reachable:
            raise Unavailable("no answer")
        while self.missed:
            state = self.missed.pop()
            current = await self.get(state.key)
            await self.put(state.key, state.value, expected=current.revision if current else 0)

    async def miss(self, plane: ControlPlane, value: Object) -> None:
        """Let an object be one that another server has just written."""
        resource, metadata = loading.resource_of(plane, value), value["metadata"]
        assert resource is not None
        found = await self.get(key_of(resource, metadata["namespace"], metadata["name"]))
        assert found is not None
        await delete(plane, value)
        self.missed.append(found)


@pytest.fixture
def store() -> LaggingStore:
    return LaggingStore()


@pytest.fixture
async def plane(store: LaggingStore) -> AsyncIterator[ControlPlane]:
    async with plane_with_account(ManualClock(), store=store) as plane:
        yield plane


async def user_of(plane: ControlPlane, token: str) -> User:
    credentials = Credentials(CIMultiDict({"Authorization": f"Bearer {token}"}), ())
    found = plane.authenticator.authenticate(credentials, [])
    return found if isinstance(found, User) else await found


async def issued(plane: ControlPlane, *, pod: Object | None = None, secret: Object | None = None) -> str:
    account = await create(plane, ACCOUNT)
    bound = Bound(pod=reference(pod) if pod else None, secret=reference(secret) if secret else None)
    return plane.tokens.issue(account, plane.tokens.audiences, 3600, bound)


async def test_a_token_that_another_server_has_issued_is_good_at_once(plane: ControlPlane, store: LaggingStore) -> None:
    pod, secret = await create(plane, POD), await create(plane, SECRET)
    for token, missed in (
        (await issued(plane), ACCOUNT),
        (await issued(plane, pod=pod), POD),
        (await issued(plane, secret=secret), SECRET),
    ):
        await store.miss(plane, missed)
        assert (await user_of(plane, token)).name == "system:serviceaccount:default:robot"


async def test_a_token_of_an_account_that_another_server_has_created_again(
    plane: ControlPlane, store: LaggingStore
) -> None:
    await delete(plane, ACCOUNT)
    token = await issued(plane)
    await store.miss(plane, ACCOUNT)
    await create(plane, ACCOUNT)
    assert (await user_of(plane, token)).name == "system:serviceaccount:default:robot"


async def test_the_store_is_asked_only_about_what_is_not_there(plane: ControlPlane, store: LaggingStore) -> None:
    good = await issued(plane)
    store.questions = 0
    await user_of(plane, good)
    for bad in ("x", f"{good[:-4]}AAAA"):
        with pytest.raises(ApiError, match="Unauthorized"):
            await user_of(plane, bad)
    assert store.questions == 0


@pytest.mark.parametrize("is_reachable", [True, False], ids=["the store answers", "the store does not answer"])
async def test_a_token_without_its_account_is_refused(
    plane: ControlPlane, store: LaggingStore, is_reachable: bool
) -> None:
    token = await issued(plane)
    await delete(plane, ACCOUNT)
    store.is_reachable, store.questions = is_reachable, 0
    with pytest.raises(ApiError, match="Unauthorized"):
        await user_of(plane, token)
    assert store.questions == 1
