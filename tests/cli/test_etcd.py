"""`noxu serve --etcd-servers`: the options, and what is wrong with them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from noxu.apiserver import cli, server
from noxu.apiserver.config import Config, Etcd
from tests.etcd_server import free_ports

PROTOBUF = "application/vnd.kubernetes.protobuf"
URL = "http://127.0.0.1:2379"
VALID: list[tuple[str, list[str], Etcd | None]] = [
    ("none", [], None),
    ("one server", [f"--etcd-servers={URL}"], Etcd((URL,))),
    ("several servers", [f"--etcd-servers={URL},http://b:1", "--etcd-servers=http://c:2"], Etcd((URL, "http://b:1", "http://c:2"))),
    ("a prefix", [f"--etcd-servers={URL}", "--etcd-prefix=/registry"], Etcd((URL,), "/registry")),
    ("protobuf", [f"--etcd-servers={URL}", f"--storage-media-type={PROTOBUF}"], Etcd((URL,), media_type=PROTOBUF)),
    (
        "a user",
        [f"--etcd-servers={URL}", "--etcd-username=a", "--etcd-password-file=b"],
        Etcd((URL,), username="a", password_file=Path("b")),
    ),
    (
        "files",
        [f"--etcd-servers={URL}", "--etcd-cafile=a", "--etcd-certfile=b", "--etcd-keyfile=c"],
        Etcd((URL,), ca_file=Path("a"), certificate_file=Path("b"), key_file=Path("c")),
    ),
]  # fmt: skip
INVALID: list[tuple[str, list[str], str]] = [
    ("memory", ["--memory", f"--etcd-servers={URL}"], "--memory and --etcd-servers exclude each other"),
    (
        "files alone",
        ["--etcd-cafile=a"],
        "--etcd-cafile, --etcd-certfile, --etcd-keyfile and --etcd-username need --etcd-servers",
    ),
    (
        "no password",
        [f"--etcd-servers={URL}", "--etcd-username=a"],
        "--etcd-username and --etcd-password-file need each other",
    ),
    (
        "protobuf without etcd",
        [f"--storage-media-type={PROTOBUF}"],
        "--storage-media-type needs --etcd-servers: other stores have JSON",
    ),
    ("no key", [f"--etcd-servers={URL}", "--etcd-certfile=a"], "--etcd-certfile and --etcd-keyfile need each other"),
]


@pytest.mark.parametrize(("arguments", "etcd"), [row[1:] for row in VALID], ids=[row[0] for row in VALID])
def test_valid_options(arguments: list[str], etcd: Etcd | None, monkeypatch: pytest.MonkeyPatch) -> None:
    configs: list[Config] = []
    monkeypatch.setattr(sys, "argv", ["noxu", "serve", *arguments])
    monkeypatch.setattr(server, "run", lambda config, **_: configs.append(config))
    assert cli.main(["serve", *arguments]) == 0
    assert [config.etcd for config in configs] == [etcd]


@pytest.mark.parametrize(("arguments", "message"), [row[1:] for row in INVALID], ids=[row[0] for row in INVALID])
def test_invalid_options(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["serve", *arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--etcd-servers=127.0.0.1"], "noxu: etcd: '127.0.0.1' is not a URL of etcd, like http://127.0.0.1:2379"),
        (
            ["--etcd-servers=https://127.0.0.1:1", "--etcd-cafile=/none"],
            "noxu: etcd: /none: No such file or directory",
        ),
        (["--etcd-servers={url}"], "noxu: cannot read from etcd at {url}: "),
    ],
)
def test_a_server_without_etcd_does_not_start(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("hpack", reason="package: hpack")
    url = f"http://127.0.0.1:{free_ports(1)[0]}"
    given = [argument.format(url=url) for argument in arguments]
    assert cli.main(["serve", "--port=0", f"--data={tmp_path}", *given]) == 1
    assert capsys.readouterr().err.startswith(message.format(url=url))


def test_without_the_extra_the_error_names_it() -> None:
    program = (
        "import sys\nsys.modules['hpack'] = None\nfrom noxu.apiserver import cli\n"
        f"sys.exit(cli.main(['serve', '--port=0', '--etcd-servers={URL}']))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    text = "noxu: --etcd-servers needs the package hpack: install noxu with the extra etcd, noxu[etcd]\n"
    assert (ended.returncode, ended.stderr) == (1, text)
