"""`noxu serve --etcd-servers`: the options, and what is wrong with them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from noxu import cli
from noxu.config import Config, Etcd
from noxu.process import running
from tests.etcd_server import free_ports

PROTOBUF = "application/vnd.kubernetes.protobuf"
URL = "http://127.0.0.1:2379"
ROOT = Path(__file__).parents[2]
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
    monkeypatch.setattr(running, "run", lambda config, **_: configs.append(config))
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
    pytest.importorskip("noxu_storage.etcd.channel", reason="package: grpc")
    url = f"http://127.0.0.1:{free_ports(1)[0]}"
    given = [argument.format(url=url) for argument in arguments]
    assert cli.main(["serve", "--port=0", f"--data={tmp_path}", *given]) == 1
    assert capsys.readouterr().err.startswith(message.format(url=url))


WITH_ETCD: list[tuple[str, list[str]]] = [
    ("grpc", ["serve", "--port=0"]),
    ("google", ["serve", "--port=0"]),
    ("google", ["check"]),
    ("google", ["snapshot", "s.db"]),
    ("google", ["validate", "--stored"]),
]
PACKAGES = {"grpc": "grpcio", "google": "protobuf"}


@pytest.mark.slow
@pytest.mark.parametrize(("module", "arguments"), WITH_ETCD, ids=[f"{row[1][0]} without {row[0]}" for row in WITH_ETCD])
def test_without_the_extra_the_error_says_how_to_install_it(module: str, arguments: list[str], tmp_path: Path) -> None:
    program = (
        f"import sys\nsys.modules[{module!r}] = None\nfrom noxu import cli\n"
        f"sys.exit(cli.main([*sys.argv[1:], '--etcd-servers={URL}']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    text = f"--etcd-servers needs the package {PACKAGES[module]}: pip install 'noxu[etcd]'\n"
    assert ended.returncode != 0
    assert ended.stderr.endswith(text), ended.stderr


def test_every_optional_package_is_of_an_extra_that_is_named() -> None:
    """A module of the server that imports another package than the required ones is reached by `etcd_access` alone.

    Those of the extra `otel` are reached by `noxu.process.tracing` alone. Pytest and Hypothesis belong to who tests with them.
    """
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {_name(each) for each in metadata["dependencies"]}
    optional = {_name(each) for each in metadata["optional-dependencies"]["etcd"]}
    known = {"google": "protobuf", "grpc": "grpcio", "re2": "google-re2", "jwt": "pyjwt", "yaml": "pyyaml", "pytest": "pytest",
             "prometheus_client": "prometheus-client", "yarl": "aiohttp", "multidict": "aiohttp", "jsonpointer": "jsonpatch", "opentelemetry": "opentelemetry-sdk"}  # fmt: skip
    found: dict[str, set[str]] = {}
    for folder in ("apiserver", "storage"):
        for path in (ROOT / folder).rglob("*.py"):
            for module in re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), re.MULTILINE):
                if (
                    module not in sys.stdlib_module_names
                    and module not in ("noxu", "noxu_storage")
                    and find_spec(module) is not None
                ):
                    found.setdefault(known.get(module, module), set()).add(path.name)
    others = {name: files for name, files in found.items() if name not in required}
    assert set(others) <= {*optional, "opentelemetry-sdk", "pytest", "hypothesis"}
    assert others.get("hypothesis", set()) <= {"strategies.py"}
    assert others.get("opentelemetry-sdk", set()) <= {"span_export.py", "spans.py", "tracing.py"}
    assert {file for name in optional for file in others.get(name, ())} == {"channel.py", "client.py", "messages.py"}  # fmt: skip


def _name(requirement: str) -> str:
    return re.split(r"[<>=;~ ]", requirement)[0].lower()
