"""Static tokens: the file, and what it says of users."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu.registry.access import User
from noxu.security.credentials import Identity, Token
from noxu.security.static_tokens import StaticTokens, parse, read_file

USERS: list[tuple[str, str, User]] = [
    ("without groups", "t,u,1", User("u", "1", ("system:authenticated",))),
    ("with a group", "t,u,1,g", User("u", "1", ("g", "system:authenticated"))),
    ("with groups", 't,u,1,"g1,g2"', User("u", "1", ("g1", "g2", "system:authenticated"))),
    ("with groups that are not trimmed", 't,u,1,"g1, g2"', User("u", "1", ("g1", " g2", "system:authenticated"))),
    ("with more columns, which are ignored", "t,u,1,g,x", User("u", "1", ("g", "system:authenticated"))),
    ("in the group of anonymous users", "t,u,1,system:unauthenticated", User("u", "1", ("system:unauthenticated",))),
    ("in the group already", "t,u,1,system:authenticated", User("u", "1", ("system:authenticated",))),
]


@pytest.mark.parametrize(("line", "user"), [row[1:] for row in USERS], ids=[row[0] for row in USERS])
def test_a_user(tmp_path: Path, line: str, user: User) -> None:
    (tmp_path / "tokens").write_text(line)
    assert read_file(tmp_path / "tokens") == {Token("t").digest: user}


def test_two_columns_are_too_few() -> None:
    with pytest.raises(ValueError, match="token file") as caught:
        list(parse("a,b,c\nt,u\n", "/f"))
    assert str(caught.value) == ("token file '/f' must have at least 3 columns (token, user name, user uid), found 2")


def test_an_empty_token_is_skipped_and_of_two_equal_ones_the_last_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "tokens").write_text(",nobody,0\ncanary,a,1\ncanary,b,2\n")
    with caplog.at_level(logging.WARNING):
        users = read_file(tmp_path / "tokens")
    assert [user.name for user in users.values()] == ["b"]
    assert [record.message.split(" has")[0] for record in caplog.records] == ["empty token", "duplicate token"]
    assert "canary" not in caplog.text


def test_a_token_has_the_audiences_of_the_server() -> None:
    tokens = StaticTokens({Token("t").digest: User("u")}, ["a", "b"])
    assert tokens(Token("t"), ["c", "b"]) == Identity(User("u"), ("b",))
    assert tokens(Token("t"), ["c"]) is None
    assert tokens(Token("x"), ["a"]) is None


def test_a_token_that_the_server_makes_is_random_and_good() -> None:
    tokens = StaticTokens({}, ["a"])
    made = {tokens.issue(User("u", groups=("g",))) for _ in range(3)}
    assert len(made) == 3
    for text in made:
        identity = tokens(Token(text), ["a"])
        assert identity is not None
        assert identity.user == User("u", "", ("g", "system:authenticated"))


@given(st.text(alphabet='tu,"\n\r #'))
def test_any_file_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert all(isinstance(user, User) for _, user in parse(text, "/f"))
