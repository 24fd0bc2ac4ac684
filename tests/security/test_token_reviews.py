"""Reviews of tokens: whose they are, or why they are bad."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from noxu.api.errors import ApiError
from noxu.control_plane import ControlPlane
from noxu.registry.access import User
from noxu.security.credentials import Token
from noxu.security.reviews import review_token
from noxu.security.settings import Settings
from noxu.values import Object
from tests.clocks import ManualClock
from tests.security.planes import ACCOUNT, create, delete, plane_with_account

STATIC = {Token("static").digest: User("u", "1", ("g", "system:authenticated"))}


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    async with plane_with_account(ManualClock(), Settings(users=STATIC, audiences=("api",))) as found:
        yield found


async def review(plane: ControlPlane, token: str, *audiences: str) -> Object:
    return await review_token(plane.authenticator, {"token": token, "audiences": list(audiences)})


async def token_for(plane: ControlPlane, *audiences: str) -> str:
    return plane.tokens.issue(await create(plane, ACCOUNT), audiences, 600)


def bad(*texts: str) -> Object:
    return {"user": {}, "error": texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"}


async def test_a_token_of_an_account(plane: ControlPlane) -> None:
    status = await review(plane, await token_for(plane, "api"))
    assert (status["authenticated"], status["audiences"]) == (True, ["api"])
    assert status["user"]["username"] == "system:serviceaccount:default:robot"
    assert list(status["user"]["extra"]) == ["authentication.kubernetes.io/credential-id"]


async def test_a_token_for_others_is_good_if_they_ask(plane: ControlPlane) -> None:
    text = await token_for(plane, "x")
    why = 'token audiences ["x"] is invalid for the target audiences ["api"]'
    assert await review(plane, text) == bad("invalid bearer token", why)
    status = await review(plane, text, "x")
    assert (status["authenticated"], status["audiences"]) == (True, ["x"])


async def test_a_token_whose_account_was_deleted(plane: ControlPlane) -> None:
    text = await token_for(plane, "api")
    await delete(plane, ACCOUNT)
    assert await review(plane, text) == bad("invalid bearer token", 'serviceaccounts "robot" not found')


async def test_a_static_token_has_the_audiences_of_the_server(plane: ControlPlane) -> None:
    user = {"username": "u", "uid": "1", "groups": ["g", "system:authenticated"]}
    assert await review(plane, "static") == {"authenticated": True, "user": user, "audiences": ["api"]}
    assert await review(plane, "static", "api", "x") == {"authenticated": True, "user": user, "audiences": ["api"]}
    assert await review(plane, "static", "x") == bad("invalid bearer token")


@pytest.mark.parametrize("token", ["x", " static", "static ", "Bearer static", "a.b.c"])
async def test_an_unknown_token(plane: ControlPlane, token: str) -> None:
    assert await review(plane, token) == bad("invalid bearer token")


async def test_without_a_token_it_is_refused(plane: ControlPlane) -> None:
    with pytest.raises(ApiError) as caught:
        await review_token(plane.authenticator, {})
    assert (caught.value.code, caught.value.message) == (400, "token is required for TokenReview in authentication")
