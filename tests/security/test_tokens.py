"""Tokens of service accounts: what they say, and when they are good."""

from __future__ import annotations

import base64
import contextlib
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noxu.api.errors import ApiError
from noxu.control_plane import ControlPlane
from noxu.security.claims import LEGACY_ISSUER, MAX_TOKEN, parse
from noxu.security.credentials import Identity, Rejected, Token, Unloaded
from noxu.security.keys import BAD_SIGNATURE, Keys
from noxu.security.settings import Settings
from noxu.security.tokens import INVALIDATED, UNBOUND, Bound
from noxu.values import Object
from tests.clocks import ManualClock
from tests.security.planes import ACCOUNT, NODE, POD, SECRET, create, delete, plane_with_account, reference

ISSUER = "https://kubernetes.default.svc.cluster.local"


class World:
    """A server with an account, a pod on a node, and a Secret."""

    def __init__(self, plane: ControlPlane, clock: ManualClock) -> None:
        self.plane, self.clock, self.tokens = plane, clock, plane.tokens
        self.account: Object = {}
        self.pod: Object = {}
        self.node: Object = {}
        self.secret: Object = {}

    async def check(self, text: str, *audiences: str) -> Identity | None:
        while True:
            try:
                return self.tokens(Token(text), audiences or self.tokens.audiences)
            except Unloaded as missing:
                await self.plane.reader.collection(missing.resource)

    async def refusal(self, text: str, *audiences: str) -> str:
        with pytest.raises(Rejected) as caught:
            await self.check(text, *audiences)
        return str(caught.value)

    def issue(self, *audiences: str, seconds: int = 3600, bound: Bound = UNBOUND) -> str:
        return self.tokens.issue(self.account, audiences or self.tokens.audiences, seconds, bound)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    clock = ManualClock()
    async with plane_with_account(clock, Settings(issuers=(ISSUER, "https://old.example"))) as plane:
        found = World(plane, clock)
        found.account = await create(plane, ACCOUNT)
        found.node, found.secret = await create(plane, NODE), await create(plane, SECRET)
        found.pod = await create(plane, POD)
        yield found


def claims_of(text: str) -> Any:
    payload = text.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def forge(world: World, changed: Object) -> str:
    """A token with other claims, that the server's key has signed."""
    payload = claims_of(world.issue()) | changed
    return world.tokens.keys.signing().sign(json.dumps({k: v for k, v in payload.items() if v is not None}).encode())


async def test_the_claims_of_a_token(world: World) -> None:
    bound = Bound(pod=reference(world.pod), node=reference(world.node))
    claims, now = claims_of(world.issue("a", "b", bound=bound)), int(world.clock.now().timestamp())
    assert str(uuid.UUID(claims.pop("jti")))
    assert claims == {
        "aud": ["a", "b"],
        "iss": ISSUER,
        "sub": "system:serviceaccount:default:robot",
        "iat": now,
        "nbf": now,
        "exp": now + 3600,
        "kubernetes.io": {
            "namespace": "default",
            "serviceaccount": {"name": "robot", "uid": world.account["metadata"]["uid"]},
            "pod": {"name": "p", "uid": world.pod["metadata"]["uid"]},
            "node": {"name": "n", "uid": world.node["metadata"]["uid"]},
        },
    }


async def test_the_user_of_a_token(world: World) -> None:
    text = world.issue(bound=Bound(pod=reference(world.pod), node=reference(world.node)))
    identity = await world.check(text)
    assert identity is not None
    user = identity.user
    assert (user.name, user.uid) == ("system:serviceaccount:default:robot", world.account["metadata"]["uid"])
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated")
    prefix = "authentication.kubernetes.io/"
    assert user.extra == (
        (f"{prefix}credential-id", (f"JTI={claims_of(text)['jti']}",)),
        (f"{prefix}node-name", ("n",)),
        (f"{prefix}node-uid", (world.node["metadata"]["uid"],)),
        (f"{prefix}pod-name", ("p",)),
        (f"{prefix}pod-uid", (world.pod["metadata"]["uid"],)),
    )


AUDIENCES: list[tuple[str, list[str], list[str], str | tuple[str, ...]]] = [
    ("the server's", [], [], (ISSUER, "https://old.example")),
    ("one of several", ["a", "b"], ["c", "b"], ("b",)),
    ("others", ["a"], ["b", "c"], 'token audiences ["a"] is invalid for the target audiences ["b" "c"]'),
    ("none of the server's", ["a"], [],
     f'token audiences ["a"] is invalid for the target audiences ["{ISSUER}" "https://old.example"]'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("of_token", "asked", "expected"), [row[1:] for row in AUDIENCES], ids=[row[0] for row in AUDIENCES]
)
async def test_audiences(world: World, of_token: list[str], asked: list[str], expected: str | tuple[str, ...]) -> None:
    text = world.issue(*of_token)
    if isinstance(expected, str):
        assert await world.refusal(text, *asked) == expected
        return
    identity = await world.check(text, *asked)
    assert identity is not None
    assert identity.audiences == expected


TIMES: list[tuple[str, float, str]] = [
    ("when it is issued", 0, ""),
    ("at its end", 600, ""),
    ("a minute later, because clocks differ", 659, ""),
    ("after that", 662, "service account token has expired"),
    ("a minute before it is issued", -59, ""),
    ("before that", -62, "service account token is not valid yet"),
]


@pytest.mark.parametrize(("seconds", "error"), [row[1:] for row in TIMES], ids=[row[0] for row in TIMES])
async def test_the_time_of_a_token(world: World, seconds: float, error: str) -> None:
    text = world.issue(seconds=600)
    assert await world.check(text) is not None
    world.clock.jump(seconds)
    if error:
        assert await world.refusal(text) == error
    else:
        assert await world.check(text) is not None


async def test_a_token_of_the_future(world: World) -> None:
    later = int(world.clock.now().timestamp()) + 100
    assert await world.refusal(forge(world, {"iat": later})) == "service account token is issued in the future"


async def test_issuers(world: World) -> None:
    assert await world.check(forge(world, {"iss": "https://old.example"})) is not None
    assert await world.check(forge(world, {"iss": "https://other.example"})) is None


GONE: list[tuple[str, Object, str]] = [
    ("account", ACCOUNT, 'serviceaccounts "robot" not found'),
    ("pod", POD, INVALIDATED),
    ("secret", SECRET, INVALIDATED),
    ("node", NODE, INVALIDATED),
]


def bound_to(world: World, kind: str) -> Bound:
    return UNBOUND if kind == "account" else Bound(**{kind: reference(getattr(world, kind))})


@pytest.mark.parametrize(("kind", "value", "error"), GONE)
async def test_a_token_ends_with_its_object(world: World, kind: str, value: Object, error: str) -> None:
    text = world.issue(bound=bound_to(world, kind))
    assert await world.check(text) is not None
    await delete(world.plane, value)
    assert await world.refusal(text) == error


async def test_a_pod_may_outlive_its_node(world: World) -> None:
    text = world.issue(bound=Bound(pod=reference(world.pod), node=reference(world.node)))
    await delete(world.plane, NODE)
    assert await world.check(text) is not None


@pytest.mark.parametrize(("kind", "value", "_"), GONE)
async def test_another_object_of_the_same_name(world: World, kind: str, value: Object, _: str) -> None:
    text = world.issue(bound=bound_to(world, kind))
    assert await world.check(text) is not None
    await delete(world.plane, value)
    new = (await create(world.plane, value))["metadata"]["uid"]
    old = getattr(world, kind)["metadata"]["uid"]
    assert await world.refusal(text) == (
        f"service account UID ({new}) does not match claim ({old})"
        if kind == "account"
        else f"{kind} UID ({new}) does not match service account {kind} ref claim ({old})"
    )


async def test_an_account_that_is_being_deleted_for_long(world: World) -> None:
    text = world.issue()
    account = world.account
    account["metadata"]["finalizers"] = ["example.com/wait"]
    account["metadata"].pop("resourceVersion")
    stored = await create(world.plane, account)
    assert stored["metadata"]["finalizers"]
    entry = world.plane.reader.loaded(world.tokens._accounts)
    assert entry is not None
    for key, one in entry.entries.items():
        if key.name == "robot":
            value = json.loads(one.stored)
            value["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
            revision = await world.plane.store.put(key, json.dumps(value).encode(), expected=one.revision)
            await world.plane.cache.reached(revision)
            break
    assert await world.check(text) is not None, "For a minute it is still good."
    world.clock.jump(62)
    assert await world.refusal(text) == "service account default/robot has been deleted"


# -- legacy tokens ------------------------------------------------------------------------------------------------------


async def legacy(world: World, **labels: str) -> str:
    text = world.tokens.issue_legacy(world.account, "s")
    secret = {**SECRET, "data": {"token": base64.b64encode(text.encode()).decode()}}
    await create(world.plane, secret | {"metadata": {**SECRET["metadata"], "labels": labels}})
    return text


async def test_a_legacy_token_lives_as_long_as_its_secret(world: World) -> None:
    text = await legacy(world)
    assert claims_of(text) == {
        "iss": LEGACY_ISSUER,
        "sub": "system:serviceaccount:default:robot",
        "kubernetes.io/serviceaccount/namespace": "default",
        "kubernetes.io/serviceaccount/secret.name": "s",
        "kubernetes.io/serviceaccount/service-account.name": "robot",
        "kubernetes.io/serviceaccount/service-account.uid": world.account["metadata"]["uid"],
    }
    world.clock.advance(1e9)
    identity = await world.check(text)
    assert identity is not None
    assert (identity.user.name, identity.user.extra) == ("system:serviceaccount:default:robot", ())
    await delete(world.plane, SECRET)
    assert await world.refusal(text) == "Token has been invalidated"


async def test_a_legacy_token_that_the_secret_has_no_longer(world: World) -> None:
    text = await legacy(world)
    assert await world.check(text) is not None
    await create(world.plane, SECRET)
    assert await world.refusal(text) == "Token does not match server's copy"


async def test_a_legacy_token_that_was_marked_invalid(world: World) -> None:
    text = await legacy(world, **{"kubernetes.io/legacy-token-invalid-since": "2026-01-01"})
    assert (await world.refusal(text)).startswith(
        "the token in secret default/s for service account default/robot has been"
    )


DAY = 86_400


@pytest.mark.parametrize(
    "labels", [{}, {"kubernetes.io/legacy-token-invalid-since": "2026-01-01"}], ids=["good", "invalid"]
)
async def test_the_use_of_a_legacy_token_is_told_once_a_day(world: World, labels: dict[str, str]) -> None:
    """Also if it is refused because it was marked invalid: then each time, as its label is looked at each time."""
    used: list[tuple[str, str]] = []
    world.tokens.used = lambda namespace, name: used.append((namespace, name))
    text = await legacy(world, **labels)
    counts = []
    for _ in range(2):
        for _ in range(3):
            with contextlib.suppress(Rejected):
                await world.check(text)
        counts.append(len(used))
        world.clock.advance(DAY)
    assert set(used) == {("default", "s")}
    assert counts == ([3, 6] if labels else [1, 2])


async def test_tokens_that_are_not_legacy_are_not_tracked(world: World) -> None:
    world.tokens.used = lambda *_: pytest.fail("tracked")
    assert await world.check(world.issue(bound=Bound(secret=reference(world.secret)))) is not None


async def test_a_legacy_token_ends_with_its_account(world: World) -> None:
    text = await legacy(world)
    await delete(world.plane, ACCOUNT)
    assert await world.refusal(text) == 'serviceaccounts "robot" not found'
    new = (await create(world.plane, ACCOUNT))["metadata"]["uid"]
    old = world.account["metadata"]["uid"]
    assert await world.refusal(text) == f"ServiceAccount UID ({new}) does not match claim ({old})"


async def test_without_lookup_a_legacy_token_needs_nothing() -> None:
    clock = ManualClock()
    async with plane_with_account(clock, Settings(lookup=False)) as plane:
        world = World(plane, clock)
        world.account = await create(plane, ACCOUNT)
        text = plane.tokens.issue_legacy(world.account, "none")
        await delete(plane, ACCOUNT)
        assert await world.check(text) is not None


# -- what is not a token ------------------------------------------------------------------------------------------------


def part(value: Any) -> str:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def repeated(name: str, *values: str) -> bytes:
    """An object that has a key several times."""
    return f"{{{','.join(f'{json.dumps(name)}:{json.dumps(value)}' for value in values)}}}".encode()


NO_OPINION: list[tuple[str, str]] = [
    ("nothing", ""),
    ("a word", "x"),
    ("dots", ".."),
    ("two parts", "a.b"),
    ("four parts", "a.b.c.d"),
    ("a header that is no JSON", f"{part(b'x')}.{part({'iss': ISSUER})}.c"),
    ("claims that are a list", f"{part({})}.{part([])}.c"),
    ("claims that are nested too deep", f"{part({})}.{part(b'[' * 20_000)}.c"),
    ("a header that is nested too deep", f"{part(b'[' * 20_000)}.{part({'iss': ISSUER})}.c"),
    ("an issuer twice", f"{part({})}.{part(repeated('iss', 'x', ISSUER))}.c"),
    ("an algorithm twice", f"{part(repeated('alg', 'none', 'ES256'))}.{part({'iss': ISSUER})}.c"),
    ("an issuer that is a number", f"{part({})}.{part({'iss': 1})}.c"),
    ("another issuer", f"{part({})}.{part({'iss': 'x'})}.c"),
    ("a letter outside ASCII", f"{part({})}.{part({'iss': ISSUER})}.é"),
    ("a surrogate", f"{part({})}.{part({'iss': ISSUER})}.\udcff"),
    ("a line end", f"{part({})}.{part({'iss': ISSUER})}.c\n"),
]


@pytest.mark.parametrize("text", [row[1] for row in NO_OPINION], ids=[row[0] for row in NO_OPINION])
async def test_what_is_no_token_of_this_server(world: World, text: str) -> None:
    assert await world.check(text) is None


async def test_a_token_that_is_too_long(world: World) -> None:
    text = forge(world, {"x": "a" * MAX_TOKEN})
    assert parse(text) is None


FORGED: list[tuple[str, str]] = [
    ("no algorithm", BAD_SIGNATURE),
    ("no algorithm, without a signature", BAD_SIGNATURE),
    ("other claims", BAD_SIGNATURE),
    ("a shortened signature", BAD_SIGNATURE),
    ("an unknown key", "invalid signature, no keys found"),
    ("a key that is a number", BAD_SIGNATURE),
    ("a critical header", BAD_SIGNATURE),
]


@pytest.mark.parametrize(("how", "error"), FORGED)
async def test_a_forged_token_is_refused(world: World, how: str, error: str) -> None:
    header, claims, signature = world.issue().split(".")
    given = json.loads(base64.urlsafe_b64decode(header + "=="))
    text = {
        "no algorithm": f"{part(given | {'alg': 'none'})}.{claims}.{signature}",
        "no algorithm, without a signature": f"{part({'alg': 'none'})}.{claims}.AA",
        "other claims": f"{header}.{part(claims_of(world.issue()) | {'sub': 'x'})}.{signature}",
        "a shortened signature": f"{header}.{claims}.{signature[:-4]}",
        "an unknown key": f"{part(given | {'kid': 'x'})}.{claims}.{signature}",
        "a key that is a number": f"{part(given | {'kid': 1})}.{claims}.{signature}",
        "a critical header": f"{part(given | {'crit': ['x'], 'x': 1})}.{claims}.{signature}",
    }[how]
    assert await world.refusal(text) == error


MALFORMED: list[tuple[str, Object]] = [
    ("no account", {"kubernetes.io": None}),
    ("an account that is a text", {"kubernetes.io": {"serviceaccount": "x"}}),
    ("a time that is a text", {"exp": "x"}),
    ("a time that is a boolean", {"nbf": True}),
    ("audiences that are numbers", {"aud": [1]}),
    ("a subject that is a list", {"sub": []}),
    ("a namespace with a slash", {"kubernetes.io": {"namespace": "a/b", "serviceaccount": {"name": "x"}}}),
    ("legacy claims that are missing", {"iss": LEGACY_ISSUER}),
    ("a legacy subject that does not fit", {"iss": LEGACY_ISSUER, **{
        f"kubernetes.io/serviceaccount/{name}": "x"
        for name in ("namespace", "secret.name", "service-account.name", "service-account.uid")}}),
]  # fmt: skip


@pytest.mark.parametrize("changed", [row[1] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
async def test_signed_claims_that_are_malformed(world: World, changed: Object) -> None:
    assert await world.refusal(forge(world, changed))


@given(st.text(alphabet="ab.{}=-_") | st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_parsed_or_not(text: str) -> None:
    parse(text)
    Token(text)


@given(st.binary(), st.binary())
def test_any_parts_are_parsed_or_not(header: bytes, payload: bytes) -> None:
    parse(f"{part(header)}.{part(payload)}.AA")


async def test_a_server_whose_key_is_broken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "sa.key").write_text("x")
    clock = ManualClock()
    async with plane_with_account(clock, Settings(keys=Keys(own=tmp_path / "sa.key"))) as plane:
        world = World(plane, clock)
        world.account = await create(plane, ACCOUNT)
        with pytest.raises(ApiError, match="the server has no key") as caught:
            world.issue()
        assert caught.value.code == 500
        assert await world.refusal(f"{part({})}.{part({'iss': ISSUER})}.AA") == "invalid signature, no keys found"
    assert [str(tmp_path) in record.message for record in caplog.records] == [True, True]


async def test_only_verified_tokens_are_remembered_and_not_without_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noxu.security.tokens.MAX_CACHED", 3)
    texts = [world.issue() for _ in range(5)]
    for text in texts:
        await world.check(text)
        await world.refusal(text + "A")
    assert list(world.tokens._verified) == [Token(text).digest for text in texts[-3:]]
