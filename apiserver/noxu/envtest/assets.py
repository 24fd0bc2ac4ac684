"""`noxu envtest`: fill the folder that `KUBEBUILDER_ASSETS` names with `etcd`, `kube-apiserver` and `kubectl`.

envtest runs these programs by their path. Here they are launchers, which replace themselves (exec) by the Python that wrote
them: the process that envtest starts, signals and waits for is the server. A launcher is a script of the shell, because the
path of an interpreter after `#!` may be neither long nor contain spaces. It answers `--help` and `--version` by itself:
envtest asks for the help before each start.

`kubectl` is a link to the one that is installed, next to this Python or on the PATH; without one it is a launcher, too.

Files are replaced atomically, so that tests that are running are not disturbed. Files that others have written are left
alone.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

import noxu_storage
from noxu.config import KUBERNETES_VERSION
from noxu.envtest import etcd, flags
from noxu.files import write_whole

_FOLDERS: Final = list(
    dict.fromkeys(
        (str(Path(__file__).absolute().parents[2]), str(Path(str(noxu_storage.__file__)).absolute().parents[1]))
    )
)
"""The folders that have the packages of this program: one if it is installed, two in a checkout."""

MARK: Final = "# Written by `noxu envtest`, and replaced by it."
_ETCD: Final = """\
#!/bin/sh
{mark}
case "$1" in
-h | -help | --help) exec cat <<'END'
{help}END
;;
--version | -version) exec cat <<'END'
{version}END
;;
esac
export NOXU_PARENT=$PPID
exec {python} -I -S {program} "$@"
"""
_KUBE_APISERVER: Final = """\
#!/bin/sh
{mark}
case "$1" in
-h | --help) exec cat <<'END'
{help}END
;;
--version) echo 'Kubernetes v{version}'; exit ;;
esac
export NOXU_PARENT=$PPID
exec {python} -E -P -c {program} "$@"
"""
_KUBECTL: Final = """\
#!/bin/sh
{mark}
exec {python} -E -P -c {program} "$@"
"""
_MAIN: Final = (
    "import sys; sys.path[:0] = [folder for folder in {folders!r} if folder not in sys.path]; "
    "from noxu.envtest.{module} import main; main()"
)
"""An installed package is found anyway. A checkout comes first, so that no other version is run."""


class AssetsError(Exception):
    """The folder cannot be written. The message has the reason."""


def write(folder: Path) -> None:
    """Write the programs into a folder, which is created. Raises AssetsError."""
    folder = folder.absolute()
    texts = _texts()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in texts:
            if not _is_replaceable(folder / name):
                raise AssetsError(
                    f"{folder / name} was not written by Noxu, so it is not replaced; name another folder"
                )
        for name, text in texts.items():
            _write_program(folder / name, text)
        _link_kubectl(folder / "kubectl")
    except OSError as error:
        raise AssetsError(f"cannot write {error.filename or folder}: {error.strerror}") from None


def store_folder(folder: Path, version: str = KUBERNETES_VERSION) -> Path:
    """The folder of a version in the layout that setup-envtest and kube-api-test share."""
    return folder / "k8s" / f"{version}-{_system()}-{_machine()}"


def default_folder() -> Path:
    """A folder of the user's own for this Python."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "noxu", "envtest", sys.prefix.strip("/").replace("/", "-"))


def _texts() -> dict[str, str]:
    python = shlex.quote(sys.executable)
    etcd_file = str(Path(__file__).absolute().with_name("etcd.py"))

    def program(module: str) -> str:
        return shlex.quote(_MAIN.format(folders=_FOLDERS, module=module))

    return {
        "etcd": _ETCD.format(
            mark=MARK, help=etcd.HELP, version=etcd.VERSION, python=python, program=shlex.quote(etcd_file)
        ),
        "kube-apiserver": _KUBE_APISERVER.format(
            mark=MARK,
            help=flags.help_text(),
            version=KUBERNETES_VERSION,
            python=python,
            program=program("kube_apiserver"),
        ),
    }


def _is_replaceable(path: Path) -> bool:
    """Whether there is nothing, or a launcher. Raises OSError."""
    if not path.is_symlink() and not path.exists():
        return True
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return MARK.encode() in file.read(200)


def _write_program(path: Path, text: str) -> None:
    write_whole(path, text.encode("utf-8", "surrogateescape"), 0o755)


def _link_kubectl(path: Path) -> None:
    """Make `kubectl`, unless there is a program of this name that something else has put there."""
    if path.is_symlink() and not path.exists():
        path.unlink()  # the program that it referred to was removed
    if not _is_replaceable(path):
        return
    real = kubectl(path)
    if real is None:
        program = shlex.quote(_MAIN.format(folders=_FOLDERS, module="kubectl"))
        _write_program(path, _KUBECTL.format(mark=MARK, python=shlex.quote(sys.executable), program=program))
        return
    temporary = Path(tempfile.mkdtemp(prefix=".kubectl.", dir=path.parent))
    try:
        (temporary / "kubectl").symlink_to(real)
        (temporary / "kubectl").replace(path)
    finally:
        shutil.rmtree(temporary)


def kubectl(instead_of: Path) -> str | None:
    """The installed kubectl: next to this Python, where wheels have their programs, or on the PATH; not a launcher."""
    places = (str(Path(sys.executable).parent), *os.environ.get("PATH", os.defpath).split(os.pathsep))
    for place in places:
        executable = shutil.which("kubectl", path=place)
        if executable and Path(executable).absolute() != instead_of and not _is_launcher(Path(executable)):
            return str(Path(executable).absolute())
    return None


def _is_launcher(path: Path) -> bool:
    with path.open("rb") as file:
        return MARK.encode() in file.read(200)


def _system() -> str:
    return sys.platform  # linux, darwin: as Go's GOOS


def _machine() -> str:
    """As Go's GOARCH."""
    machine = platform.machine().lower()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def run_envtest(options: argparse.Namespace) -> int:
    """Exit status 0: written; 1: they cannot be written."""
    if sys.platform == "win32":
        print("noxu: envtest needs an operating system that runs scripts of the shell", file=sys.stderr)
        return 1
    folder = default_folder() if options.directory in (None, "env") else Path(options.directory)
    if options.tree:
        folder = store_folder(folder, options.kubernetes_version)
    folder = folder.absolute()
    try:
        write(folder)
    except AssetsError as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    print(folder if options.print == "path" else f"export KUBEBUILDER_ASSETS={shlex.quote(str(folder))}")
    return 0
