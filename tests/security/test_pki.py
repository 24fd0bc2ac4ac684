"""Files of certificates: made once, kept, renewed in time, never overwritten when they are not ours."""

from __future__ import annotations

import multiprocessing
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from noxu.security.certificates import TlsError, names_in, new_authority, parse
from noxu.security.pki import Pki, in_memory, kept, written

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = ("localhost", "127.0.0.1")
FILES = ["apiserver.crt", "apiserver.key", "ca.crt", "ca.key"]


def made(directory: Path, names: tuple[str, ...] = NAMES, now: datetime = NOW) -> Pki:
    return kept(directory, names, lambda: now)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_the_files_and_who_may_read_them(tmp_path: Path) -> None:
    made(tmp_path / "data" / "pki")
    assert list(contents(tmp_path / "data" / "pki")) == FILES
    for name in FILES:
        mode = stat.S_IMODE((tmp_path / "data" / "pki" / name).stat().st_mode)
        assert mode == (0o600 if name.endswith("key") else 0o644), name
    assert stat.S_IMODE((tmp_path / "data" / "pki").stat().st_mode) == 0o700


def test_files_are_made_once(tmp_path: Path) -> None:
    first = made(tmp_path)
    before = contents(tmp_path)
    again = made(tmp_path)
    assert (again.server, again.authority.certificate) == (first.server, first.authority.certificate)
    assert contents(tmp_path) == before


def test_without_a_directory_there_are_no_files() -> None:
    found = in_memory(NAMES, lambda: NOW)
    assert found.authority.has_issued(parse(found.server.certificate))


RENEWED: list[tuple[str, tuple[str, ...], timedelta, list[str]]] = [
    ("nothing", NAMES, timedelta(days=200), []),
    ("for fewer names", ("localhost",), timedelta(), []),
    ("for another name", (*NAMES, "example.com"), timedelta(), ["apiserver.crt"]),
    ("for another address", (*NAMES, "192.0.2.1"), timedelta(), ["apiserver.crt"]),
    ("before the certificate ends", NAMES, timedelta(days=300), ["apiserver.crt"]),
    ("after it has ended", NAMES, timedelta(days=700), ["apiserver.crt"]),
    ("after the CA has ended", NAMES, timedelta(days=4000), ["apiserver.crt", "ca.crt"]),
]


@pytest.mark.parametrize(("names", "later", "expected"), [row[1:] for row in RENEWED], ids=[row[0] for row in RENEWED])
def test_what_is_renewed(tmp_path: Path, names: tuple[str, ...], later: timedelta, expected: list[str]) -> None:
    made(tmp_path)
    before = contents(tmp_path)
    found = made(tmp_path, names, NOW + later)
    assert [name for name, content in contents(tmp_path).items() if content != before[name]] == expected
    certificate = parse(found.server.certificate)
    assert found.authority.has_issued(certificate)
    assert {*names_in(certificate).dns, *names_in(certificate).addresses} >= set(names)
    assert certificate.not_valid_after_utc > NOW + later


INTERRUPTED = {
    "before the CA's certificate": ["ca.crt", "apiserver.crt", "apiserver.key"],
    "before the server's key": ["apiserver.crt", "apiserver.key"],
    "before the server's certificate": ["apiserver.crt"],
}


@pytest.mark.parametrize("removed", INTERRUPTED.values(), ids=INTERRUPTED)
def test_a_start_that_was_interrupted_is_continued(tmp_path: Path, removed: list[str]) -> None:
    made(tmp_path)
    before = contents(tmp_path)
    for name in removed:
        (tmp_path / name).unlink()
    made(tmp_path)
    after = contents(tmp_path)
    assert list(after) == FILES
    assert [name for name in FILES if after[name] != before[name]] == sorted(removed)


def foreign(directory: Path) -> None:
    (directory / "apiserver.crt").write_bytes(new_authority().issue_server(NAMES).certificate)


def not_a_ca(directory: Path) -> None:
    leaf = new_authority().issue_client("a")
    (directory / "ca.crt").write_bytes(leaf.certificate)
    (directory / "ca.key").write_bytes(leaf.key)


def other_key(name: str) -> Callable[[Path], None]:
    return lambda directory: (directory / name).write_bytes(new_authority().issue_client("a").key) and None


def text(name: str) -> Callable[[Path], None]:
    return lambda directory: (directory / name).write_text("password") and None


UNUSABLE: list[tuple[str, Callable[[Path], object], str]] = [
    ("a certificate of another CA", foreign, "apiserver.crt cannot be used: it was not issued by ca.crt; --tls-cert-file serves another certificate"),
    ("a certificate that is not a CA's", not_a_ca, "ca.crt cannot be used: the certificate is not that of a CA"),
    ("another key of the CA", other_key("ca.key"), "ca.crt cannot be used: the key is not that of the certificate"),
    ("another key of the server", other_key("apiserver.key"), "apiserver.crt cannot be used: its key is not the one in apiserver.key"),
    ("a text instead of the CA", text("ca.crt"), "ca.crt cannot be used: it is not a certificate in PEM"),
    ("a text instead of a key", text("ca.key"), "ca.key cannot be used: it is not a private key in PEM"),
    ("a CA without its key", lambda directory: (directory / "ca.key").unlink(), "ca.crt has no key: ca.key is missing; remove the certificate to have both made again"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "why"), [row[1:] for row in UNUSABLE], ids=[row[0] for row in UNUSABLE])
def test_what_cannot_be_used_is_an_error_and_stays(tmp_path: Path, spoil: Callable[[Path], object], why: str) -> None:
    made(tmp_path)
    spoil(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(TlsError) as raised:
        made(tmp_path)
    assert str(raised.value) == f"{tmp_path}/{why}"
    assert contents(tmp_path) == before


def test_a_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "pki").write_text("")
    with pytest.raises(TlsError, match=r"cannot keep certificates in .*pki: File exists"):
        made(tmp_path / "pki")


def certificates_of(directory: Path) -> tuple[bytes, bytes]:
    found = made(directory)
    return found.authority.certificate, found.server.certificate


@pytest.mark.slow
def test_servers_that_start_at_the_same_time_use_the_same_files(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:  # a fork has the locks of threads that it does not have
        assert len(set(pool.map(certificates_of, [tmp_path / "pki"] * 8))) == 1


# -- --cert-dir


def test_a_pair_is_written_where_none_is(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certs" / "apiserver.crt", tmp_path / "certs" / "apiserver.key"
    identity = new_authority().issue_server(NAMES)
    written(certificate, key, lambda: identity)
    written(certificate, key, lambda: new_authority().issue_server(NAMES))
    assert (certificate.read_bytes(), key.read_bytes()) == (identity.certificate, identity.key)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    key.unlink()
    with pytest.raises(TlsError, match=r"apiserver.crt is there without its certificate or key"):
        written(certificate, key, lambda: identity)
