"""Files with secrets: what others may read is told at the start, and what the server has made is set right."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from noxu.config import Audit, Authentication, Config, Etcd, TlsOptions
from noxu.files import keep_private, warn_if_shared
from noxu.process.server import Server
from noxu.process.stores import etcd_access
from noxu.security.certificates import new_authority

pytestmark = pytest.mark.skipif(os.name == "nt", reason="platform: files have modes")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


MODES: list[tuple[str, int, str]] = [
    ("its owner's", 0o600, ""),
    ("its owner's to read", 0o400, ""),
    ("its owner's to run", 0o700, ""),
    ("all may read it", 0o644, "--key K can be read by other users (its mode is 0644): chmod 600 K"),
    ("its group may read it", 0o640, "--key K can be read by other users (its mode is 0640): chmod 600 K"),
    ("others may write it", 0o602, "--key K can be changed by other users (its mode is 0602): chmod 600 K"),
    ("others may do both", 0o666, "--key K can be read and changed by other users (its mode is 0666): chmod 600 K"),
    ("all may read what nobody writes", 0o444, "--key K can be read by other users (its mode is 0444): chmod 400 K"),
]


@pytest.mark.parametrize(("permissions", "warning"), [row[1:] for row in MODES], ids=[row[0] for row in MODES])
def test_a_file_of_which(tmp_path: Path, caplog: pytest.LogCaptureFixture, permissions: int, warning: str) -> None:
    path = tmp_path / "k"
    path.touch()
    path.chmod(permissions)
    warn_if_shared(path, "--key")
    assert [record.getMessage().replace(str(path), "K") for record in caplog.records] == ([warning] if warning else [])
    assert mode(path) == permissions


def test_a_directory_into_which_others_write(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o755)
    warn_if_shared(tmp_path)
    assert not caplog.records
    tmp_path.chmod(0o777)
    warn_if_shared(tmp_path)
    assert f"(its mode is 0777): chmod 755 {tmp_path}" in caplog.text


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o604, 0o600), (0o440, 0o400), (0o600, 0o600)])
def test_a_file_of_the_server_is_set_right(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, before: int, after: int
) -> None:
    path = tmp_path / "k"
    path.touch()
    path.chmod(before)
    keep_private(path)
    assert mode(path) == after
    assert len(caplog.records) == (before != after)


def test_the_file_behind_a_link_is_somebody_elses(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    target, link = tmp_path / "k", tmp_path / "link"
    target.touch(0o644)
    target.chmod(0o644)
    link.symlink_to(target)
    keep_private(link)
    assert mode(target) == 0o644
    assert "can be read by other users" in caplog.text


def test_a_file_that_is_not_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    warn_if_shared(tmp_path / "k")
    keep_private(tmp_path / "k")
    assert not caplog.records


# -- what a server uses -------------------------------------------------------------------------------------------------


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o644)
    return path


def started_with(directory: Path) -> Config:
    """A configuration with a file for each option that names one with a secret, all of which everyone may read."""
    identity = new_authority().issue_server(["localhost"])
    authority = new_authority().identity
    key = rsa.generate_private_key(65537, 2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    certificate, tls_key = (
        written(directory / "tls.crt", identity.certificate),
        written(directory / "tls.key", identity.key),
    )
    sni_key = written(directory / "sni.key", identity.key)
    return Config(
        port=0,
        data=directory / "data",
        tls=TlsOptions(certificate, tls_key, named=(f"{certificate},{sni_key}",)),
        authentication=Authentication(
            token_auth_file=written(directory / "tokens", b"t,u,1"),
            service_account_key_files=(
                written(directory / "old.key", private), written(directory / "old.pub", public)),
            service_account_signing_key_file=written(directory / "sign.key", private),
        ),
        cluster_signing_cert_file=written(directory / "ca.crt", authority.certificate),
        cluster_signing_key_file=written(directory / "ca.key", authority.key),
        audit=Audit(log_path=str(written(directory / "audit.log", b""))),
    )  # fmt: skip


async def test_a_server_names_the_files_that_others_may_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with Server(started_with(tmp_path)):
        pass
    found = {
        record.getMessage().partition(" can be read by other users")[0].replace(f"{tmp_path}/", "")
        for record in caplog.records
        if "can be read by other users" in record.getMessage()
    }
    assert found == {
        "--token-auth-file tokens", "--service-account-key-file old.key", "--service-account-signing-key-file sign.key",
        "--tls-private-key-file tls.key", "--tls-sni-cert-key sni.key", "--cluster-signing-key-file ca.key",
        "--audit-log-path audit.log",
    }  # fmt: skip


def test_so_does_a_client_of_etcd(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = written(tmp_path / "key", b""), written(tmp_path / "password", b"x")
    etcd_access(Etcd(("https://127.0.0.1:1",), key_file=files[0], username="u", password_file=files[1]))
    assert ["--etcd-keyfile" in caplog.text, "--etcd-password-file" in caplog.text] == [True, True]


async def test_a_server_sets_its_own_files_right(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = Config(port=0, data=tmp_path / "data", tls=TlsOptions(), kubeconfig=tmp_path / "kubeconfig")
    async with Server(config) as server:
        server.plane.tokens.keys.signing()
    own = [tmp_path / "data" / name for name in ("noxu.db", "pki/ca.key", "pki/apiserver.key", "pki/sa.key")]
    assert [mode(path) for path in own] == [0o600] * 4
    for path in own:
        path.chmod(0o644)
    async with Server(config):
        assert [mode(path) for path in own] == [0o600] * 4
    assert sum("is 0600 now" in record.getMessage() for record in caplog.records) == 4


@pytest.mark.parametrize("name", ["pki/ca.key", "pki/apiserver.key", "pki/sa.key"])
async def test_a_key_that_cannot_be_set_right_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    config = Config(port=0, data=tmp_path, tls=TlsOptions())
    async with Server(config) as server:
        server.plane.tokens.keys.signing()
    (tmp_path / name).chmod(0o644)
    monkeypatch.setattr(Path, "chmod", _refused)
    with pytest.raises(Exception, match="Operation not permitted"):
        await Server(config).__aenter__()


def _refused(path: Path, mode: int) -> None:
    raise PermissionError(1, "Operation not permitted", str(path))
