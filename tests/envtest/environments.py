"""envtest and kube-api-test, as far as they start, use and stop the programs: the same files, command lines and requests.

Read in sigs.k8s.io/controller-runtime (pkg/internal/testing) and io.fabric8.kubeapitest.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.timing import HANGS_AFTER

POLL: Final = 0.1  # seconds between two health checks
NOT_YET: Final = (OSError, http.client.HTTPException)  # the program does not answer, or is ending
_FIRST: Final = datetime(2020, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(2100, 1, 1, tzinfo=UTC)

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Answer(NamedTuple):
    code: int
    body: Any


# -- certificates (certs/tinyca.go, CertManager.java)


@dataclass
class TinyCA:
    """A CA of envtest. All its keys are on P-256."""

    name: str = "envtest-environment"
    key: Key = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def __post_init__(self) -> None:
        builder = _builder(_name(self.name), _name(self.name), self.key)
        usage = x509.KeyUsage(True, False, True, False, False, True, False, False, False)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.certificate = builder.add_extension(usage, critical=True).sign(self.key, hashes.SHA256())

    def serving(self, address: str) -> tuple[bytes, bytes]:
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(address))]
        return self._issue(_name("localhost"), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, name: str, groups: Sequence[str] = ()) -> tuple[bytes, bytes]:
        """The groups are in one RDN with several values, as Go writes them."""
        organizations = x509.RelativeDistinguishedName(
            {x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups}
        )
        common = x509.RelativeDistinguishedName([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        subject = x509.Name([organizations, common] if groups else [common])
        return self._issue(subject, ExtendedKeyUsageOID.CLIENT_AUTH, [])

    def _issue(
        self, subject: x509.Name, usage: x509.ObjectIdentifier, names: list[x509.GeneralName]
    ) -> tuple[bytes, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self.certificate.subject, key)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return pem(builder.sign(self.key, hashes.SHA256())), key_pem(key)  # type: ignore[arg-type]


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(subject: x509.Name, issuer: x509.Name, key: Key) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    return builder.serial_number(x509.random_serial_number()).not_valid_before(_FIRST).not_valid_after(_LAST)


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key: Key, form: serialization.PrivateFormat = serialization.PrivateFormat.PKCS8) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def self_signed(names: Sequence[str], *attributes: tuple[x509.ObjectIdentifier, str]) -> tuple[bytes, bytes]:
    """A certificate of kube-api-test: RSA, its own CA, without extensions but names, and the key in PKCS#1."""
    key = rsa.generate_private_key(65537, 2048)
    subject = x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])
    builder = _builder(subject, subject, key)
    if names:
        found = [x509.IPAddress(ipaddress.ip_address(n)) if n[0].isdigit() else x509.DNSName(n) for n in names]
        builder = builder.add_extension(x509.SubjectAlternativeName(found), critical=False)
    return pem(builder.sign(key, hashes.SHA256())), key_pem(key, serialization.PrivateFormat.TraditionalOpenSSL)


# -- processes


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def ask(
    url: str, *, client: tuple[Path, Path] | None = None, authority: Path | None = None, method: str = "GET", body: Any = None,
    headers: dict[str, str] | None = None,
) -> Answer:  # fmt: skip
    """One request on a connection of its own. Without an authority the server's certificate is not verified."""
    scheme, host, port, path = re.fullmatch(r"(https?)://([^:/]+):(\d+)(/.*)", url).groups()  # type: ignore[union-attr]
    connection = http.client.HTTPConnection(host, int(port), timeout=HANGS_AFTER)
    if scheme == "https":
        context = _context(client, authority)
        connection = http.client.HTTPSConnection(host, int(port), timeout=HANGS_AFTER, context=context)
    try:
        content = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, json.dumps(body) if body is not None else None, {**content, **(headers or {})})
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    is_json = answer.headers.get_content_type() == "application/json"
    return Answer(answer.status, json.loads(text) if is_json else text.decode())


def _context(client: tuple[Path, Path] | None, authority: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = authority is not None
    context.verify_mode = ssl.CERT_NONE if authority is None else ssl.CERT_REQUIRED
    if authority is not None:
        context.load_verify_locations(authority)
    if client is not None:
        context.load_cert_chain(*client)
    return context


class Exited(Exception):
    """A program ended before it was ready. The message is what it has written."""


@dataclass
class Program:
    """A program with its log, started in a process group of its own."""

    words: list[str]
    log: Path
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self, health: str) -> None:
        """Return when a request to `health` has the status 200. Raises Exited."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.words, stdout=log, stderr=log, process_group=0, env=os.environ | self.environment
            )
        while True:
            # The ssl module of Python 3.11 and 3.12 leaves a socket open that is reset before its handshake.
            with warnings.catch_warnings(action="ignore", category=ResourceWarning), contextlib.suppress(*NOT_YET):
                if ask(health).code == 200:
                    return
            if self.process.poll() is not None:
                raise Exited(self.log.read_text())
            time.sleep(POLL)

    def stop(self) -> float:
        """Ask the process group to end. Returns the seconds until it has ended."""
        began = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(HANGS_AFTER)
        return time.monotonic() - began

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(HANGS_AFTER)


def has_flag(program: Path, flag: str) -> bool:
    """What State.CheckFlag finds out. Raises CalledProcessError."""
    text = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
    return re.search(rf"(?m)^\s*--{flag}\b", text) is not None


@dataclass
class Environment:
    """An environment of Go's envtest. `flags` replace and add flags of kube-apiserver; [] removes one."""

    assets: Path
    folder: Path
    flags: dict[str, list[str]] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    authority: TinyCA = field(default_factory=TinyCA)
    users: int = 0

    def __post_init__(self) -> None:
        self.certificates = self.folder / "certificates"
        self.data = self.folder / "k8s_test_framework_data"
        for each in (self.certificates, self.data):
            each.mkdir(exist_ok=True, parents=True)
        self.etcd_port, self.peer_port, self.port = (free_port() for _ in range(3))
        self.etcd_url = f"http://127.0.0.1:{self.etcd_port}"
        self.url = f"https://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.start_etcd()
        self.start_server()

    def start_etcd(self) -> None:
        flags = {
            "advertise-client-urls": self.etcd_url,
            "data-dir": str(self.data),
            "listen-client-urls": self.etcd_url,
            "listen-peer-urls": f"http://127.0.0.1:{self.peer_port}",
        }
        if has_flag(self.assets / "etcd", "unsafe-no-fsync"):
            flags["unsafe-no-fsync"] = "true"
        words = [f"--{name}={value}" for name, value in sorted(flags.items())]
        self.etcd = Program([str(self.assets / "etcd"), *words], self.folder / "etcd.log")
        self.etcd.start(f"{self.etcd_url}/health")

    def start_server(self) -> None:
        self.prepare()
        self.server = Program(self.command(), self.folder / "kube-apiserver.log", self.variables)
        self.server.start(f"{self.url}/healthz")
        self.admin = self.add_user("admin", ["system:masters"])
        while self.ask("/api/v1/namespaces/default").code != 200:
            time.sleep(POLL / 2)

    def prepare(self) -> None:
        """Write the certificates, unless they are there."""
        self.authority_file = self.folder / "serving-ca.crt"  # envtest keeps it in memory
        (self.certificates / "client-cert-auth-ca.crt").write_bytes(pem(self.authority.certificate))
        if (self.certificates / "apiserver.crt").exists():
            return
        serving, accounts = TinyCA(), TinyCA()
        self.authority_file.write_bytes(pem(serving.certificate))
        files = {
            "apiserver": serving.serving("127.0.0.1"),
            "sa-signer": (pem(accounts.certificate), key_pem(accounts.key)),
        }
        for name, (certificate, key) in files.items():
            (self.certificates / f"{name}.crt").write_bytes(certificate)
            (self.certificates / f"{name}.key").write_bytes(key)

    def command(self) -> list[str]:
        folder = self.certificates
        assert not has_flag(self.assets / "kube-apiserver", "insecure-port")
        flags = {
            "allow-privileged": ["true"],
            "authorization-mode": ["RBAC"],
            "bind-address": ["127.0.0.1"],
            "cert-dir": [str(folder)],
            "client-ca-file": [str(folder / "client-cert-auth-ca.crt")],
            "disable-admission-plugins": ["ServiceAccount"],
            "etcd-servers": [self.etcd_url],
            "secure-port": [str(self.port)],
            "service-account-issuer": [f"{self.url}/"],
            "service-account-key-file": [str(folder / "sa-signer.crt")],
            "service-account-signing-key-file": [str(folder / "sa-signer.key")],
            "service-cluster-ip-range": ["10.0.0.0/24"],
            **self.flags,
        }
        words = [f"--{name}={value}" if value else f"--{name}" for name in sorted(flags) for value in flags[name]]
        return [str(self.assets / "kube-apiserver"), *words]

    def add_user(self, name: str, groups: Sequence[str] = ()) -> tuple[Path, Path]:
        self.users += 1
        files = self.folder / f"user-{self.users}.crt", self.folder / f"user-{self.users}.key"
        for file, content in zip(files, self.authority.client(name, groups), strict=True):
            file.write_bytes(content)
        return files

    def ask(self, path: str, user: tuple[Path, Path] | None = None, method: str = "GET", body: Any = None) -> Answer:
        return ask(self.url + path, client=user or self.admin, authority=self.authority_file, method=method, body=body)

    @contextlib.contextmanager
    def watching(self, path: str) -> Iterator[http.client.HTTPResponse]:
        """The answer to a watch, which has begun."""
        context = _context(self.admin, self.authority_file)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=HANGS_AFTER, context=context)
        with contextlib.closing(connection):
            connection.request("GET", path)
            yield connection.getresponse()

    def stop(self) -> tuple[float, float]:
        """The seconds that kube-apiserver and etcd take."""
        return self.server.stop(), self.etcd.stop()

    def kill(self) -> None:
        for name in ("server", "etcd"):
            if name in self.__dict__ and "process" in self.__dict__[name].__dict__:
                self.__dict__[name].kill()


@contextlib.contextmanager
def started(environment: Environment) -> Iterator[Environment]:
    try:
        environment.start()
        yield environment
    finally:
        environment.kill()


class KubeApiTest:
    """An environment of Java's kube-api-test. It ends its programs with SIGKILL, and keeps its certificates."""

    def __init__(self, home: Path, assets: Path, flags: Sequence[str] = ()) -> None:
        self.home, self.assets, self.flags = home, assets, list(flags)
        home.mkdir(exist_ok=True)
        kubernetes = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        if not (home / "client.key").exists():
            self._write("apiserver", self_signed(["127.0.0.1", *kubernetes], (NameOID.COMMON_NAME, "example.org")))
            organization = (NameOID.ORGANIZATION_NAME, "system:masters")
            self._write("client", self_signed([], organization, (NameOID.COMMON_NAME, "kubeapitest")))
        self.client = home / "client.crt", home / "client.key"

    def _write(self, name: str, content: tuple[bytes, bytes]) -> None:
        (self.home / f"{name}.crt").write_bytes(content[0])
        (self.home / f"{name}.key").write_bytes(content[1])

    def start(self, data: Path) -> None:
        etcd, peer, self.port = (free_port() for _ in range(3))
        key = str(self.home / "apiserver.key")
        self.url = f"https://127.0.0.1:{self.port}"
        words = f"""--listen-client-urls http://0.0.0.0:{etcd} --advertise-client-urls http://0.0.0.0:{etcd} --initial-cluster
            default=http://localhost:{peer} --initial-advertise-peer-urls http://localhost:{peer}
            --listen-peer-urls http://localhost:{peer}""".split()
        self.etcd = Program(
            [str(self.assets / "etcd"), "-data-dir", str(data / "data"), "-wal-dir", str(data / "wal"), *words],
            data / "etcd.log",
        )
        command = [
            *(str(self.assets / "kube-apiserver"), *self.flags, "--cert-dir", str(self.home)),
            *("--secure-port", str(self.port), "--etcd-servers", f"http://0.0.0.0:{etcd}"),
            *("--authorization-mode", "RBAC", "--service-account-issuer", "https://localhost"),
            *("--service-account-signing-key-file", key, "--service-account-signing-key-file", key),
            *("--service-account-key-file", key, "--service-account-issuer", str(self.home / "apiserver.crt")),
            *("--disable-admission-plugins", "ServiceAccount", "--client-ca-file", str(self.home / "client.crt")),
            *("--service-cluster-ip-range", "10.0.0.0/24", "--allow-privileged"),
        ]
        self.server = Program(command, data / "kube-apiserver.log")
        self.etcd.start(f"http://127.0.0.1:{etcd}/health")
        self.server.start(f"{self.url}/readyz")

    def get_default_namespace(self) -> subprocess.CompletedProcess[str]:
        """With the kubectl of the folder, as ProcessReadinessChecker does."""
        words = [
            *(f"--client-certificate={self.client[0]}", f"--client-key={self.client[1]}"),
            *(f"--certificate-authority={self.home / 'apiserver.crt'}", f"--server={self.url}", "--request-timeout=5s"),
            *("get", "ns", "default"),
        ]
        environment = os.environ | {"KUBECONFIG": str(self.home / ".kubeconfig")}
        command = [str(self.assets / "kubectl"), *words]
        return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)

    def ask(self, path: str, method: str = "GET", body: Any = None) -> Answer:
        return ask(self.url + path, client=self.client, authority=self.home / "apiserver.crt", method=method, body=body)

    def stop(self) -> None:
        for program in (self.server, self.etcd):
            if "process" in program.__dict__:
                program.kill()
