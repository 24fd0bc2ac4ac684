"""The wheel installs one name, noxu, and works in a project with packages of the same names as ours.

It is built from the checkout and from the sdist, with hatchling and without the network, and installed by unpacking it
into a bare virtual environment. Its dependencies are those of this interpreter: a .pth file names their folder. The
editable install of noxu in that folder is a .pth file itself, which Python does not follow there.
"""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROJECT = {
    "storage/__init__.py": "NAME = 'the storage of the project'\n",
    "apiserver/__init__.py": "NAME = 'the apiserver of the project'\n",
    "tests/__init__.py": "",
    "tests/helpers.py": "NAME = 'the tests of the project'\n",
    "tests/test_project.py": """
import sys

import apiserver
import noxu as package
import pytest
import storage
from noxu import ApiError, Noxu
from tests import helpers

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}


def test_the_packages_of_the_project_are_imported():
    names = (storage.NAME, apiserver.NAME, helpers.NAME)
    assert names == ("the storage of the project", "the apiserver of the project", "the tests of the project")


def test_noxu_is_the_installed_wheel():
    assert package.__file__.startswith(sys.prefix)


def test_the_fixture(noxu):
    assert isinstance(noxu, Noxu)
    [stored] = noxu.apply(CONFIG_MAP)
    assert stored["data"] == {"k": "v"}


def test_errors(noxu):
    with pytest.raises(ApiError, match="is invalid"):
        noxu.create({**CONFIG_MAP, "data": {"a/b": "c"}})


def test_the_verbs(noxu_module, make_noxu):
    created = noxu_module.create(CONFIG_MAP)
    assert noxu_module.wait(created, "self.data.k == 'v'") == noxu_module.get("configmaps", "a")
    with make_noxu(manifests=[CONFIG_MAP]).watch("configmaps", "a") as events:
        assert next(events).type == "ADDED"


def test_a_server_without_the_fixture():
    with Noxu(manifests=[CONFIG_MAP]) as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert server.kubeconfig.exists()
""",
}


def build(source: Path, target: Path, kind: str) -> Path:
    """Build the `kind` (wheel or sdist) of a source tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    subprocess.run(command, check=True, cwd=source, capture_output=True)
    [built] = target.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, as an installer would unpack it."""
    directory = tmp_path_factory.mktemp("environment")
    venv.create(directory, with_pip=False, symlinks=True)
    [packages] = directory.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    entry_points = configparser.ConfigParser()
    entry_points.read(next(packages.glob("noxu-*.dist-info/entry_points.txt")))
    for name, target in entry_points["console_scripts"].items():
        module, _, function = target.partition(":")
        script = directory / "bin" / name
        script.write_text(
            f"#!{directory}/bin/python\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n"
        )
        script.chmod(0o755)
    return directory


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in PROJECT.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def run(command: Sequence[str | Path], cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON"))}
    ran = subprocess.run(command, check=False, cwd=cwd, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_top_level_names_are_noxu_and_noxu_storage(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    top_level = {name.partition("/")[0] for name in names}
    assert {name for name in top_level if not name.endswith(".dist-info")} == {"noxu", "noxu_storage"}
    assert {"noxu/py.typed", "noxu/cli.py", "noxu_storage/store.py"} <= set(names)


def test_the_wheel_is_pure_and_contains_the_packages_only(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = {name.partition(".dist-info/")[2] for name in archive.namelist()} - {""}
        [properties] = [archive.read(name).decode() for name in archive.namelist() if name.endswith("/WHEEL")]
    folders = (ROOT / "apiserver", ROOT / "storage")
    sources = {str(path.relative_to(folder)) for folder in folders for path in folder.rglob("*.py")}
    data = {str(path.relative_to(folders[0])) for path in folders[0].glob("noxu/kinds/data/**/*.json")}
    page = {str(path.relative_to(folders[0])) for path in folders[0].glob("noxu/console/page/**/*") if path.is_file()}
    assert page >= {"noxu/console/page/index.html", "noxu/console/page/vendor/LICENCES.txt"}
    assert names == {*sources, *data, *page, "noxu/py.typed"}
    assert metadata == {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    assert "Root-Is-Purelib: true" in properties


def test_a_wheel_built_from_the_sdist_has_the_same_files(wheel: Path, tmp_path: Path) -> None:
    sdist = build(ROOT, tmp_path / "sdist", "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    [source] = (tmp_path / "source").iterdir()
    from_sdist = build(source, tmp_path / "wheel", "wheel")
    assert from_sdist.name == wheel.name
    with zipfile.ZipFile(from_sdist) as one, zipfile.ZipFile(wheel) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())
        assert [name for name in one.namelist() if one.read(name) != other.read(name)] == []


def test_the_tests_of_a_project_use_the_fixture_and_their_own_packages(environment: Path, project: Path) -> None:
    output = run([environment / "bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], project)
    assert f"{PROJECT['tests/test_project.py'].count('def test_')} passed" in output


def test_the_command_prints_its_version(environment: Path, wheel: Path, project: Path) -> None:
    version = wheel.name.split("-")[1]
    assert run([environment / "bin/noxu", "--version"], project) == f"noxu {version}\n"


def test_the_installed_command_serves(environment: Path, project: Path) -> None:
    smoke = [environment / "bin/python", ROOT / "distribution/smoke.py", environment / "bin/noxu"]
    assert run(smoke, project).startswith("smoke test passed: ")


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"]], ids=" ".join)
def test_the_module_runs_as_the_command(environment: Path, project: Path, arguments: list[str]) -> None:
    output = run([environment / "bin/python", "-m", "noxu", *arguments], project)
    assert "\nusage: noxu " in output
    assert output == run([environment / "bin/noxu", *arguments], project)
