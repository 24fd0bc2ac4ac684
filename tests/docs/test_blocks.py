"""Every code block of the documentation is run by a test or checked here, or says why neither is possible.

The commands of a shell are checked one by one (`test_commands.py`), and those of kubectl run against a server
(`test_sessions.py`). The tables are the only way out, and have no entry without a use.
"""

from __future__ import annotations

import ast
import configparser
import importlib
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import noxu
from noxu import cli
from noxu.commands.findings import WriteRules
from noxu.commands.in_memory import validate
from noxu.commands.results import Shard
from noxu.control.faults import plans, rules
from noxu.control.faults.effects import EFFECTS
from noxu.manifests.documents import documents_of, split
from noxu.security.audit_policy import load
from noxu.security.static_tokens import parse
from tests.cli.test_docs_troubleshooting import constant_parts, source
from tests.docs.blocks import PAGES, ROOT, SHELLS, Block, blocks
from tests.docs.test_sessions import MESSAGES, SESSIONS
from tests.envtest.test_go import BUILD_TIMEOUT, OFFLINE, SOURCES
from tests.optional import skip_without_program
from tests.rows import rows

BLOCKS: Final = list(blocks())

# The beginnings of the names of blocks, and the test that runs all of them.
RUN_BY: Final = {
    "README.md python": "tests/testing/test_plugin.py",
    "docs/admission.md python": "tests/admission/test_admission_docs.py",
    "docs/admission.md yaml": "tests/admission/test_admission_docs.py",
    "docs/api.md python": "tests/test_api_page.py",
    "docs/apply.md console": "tests/clients/test_apply_docs.py",
    "docs/apply.md yaml": "tests/clients/test_apply_docs.py",
    "docs/architecture.md text CREATE": "tests/registry/test_docs_stages.py",
    "docs/architecture.md text  noxu": "tests/cli/test_docs_completeness.py",
    "docs/architecture.md text    bytes": "tests/cli/test_docs_completeness.py",
    "docs/ci.md": "tests/cli/test_docs_ci.py",
    "docs/cli.md console": "tests/cli/test_docs.py",
    "docs/cli.md yaml misspelt.yaml": "tests/cli/test_docs.py",
    "docs/cli.md yaml objects.yaml": "tests/cli/test_docs.py",
    "docs/cli.md yaml pool.yaml": "tests/cli/test_docs.py",
    "docs/first-change.md diff": "tests/docs/test_first_change.py",
    "docs/control.md console $ noxu blame": "tests/cli/test_past.py",
    "docs/conversion.md": "tests/registry/conversion/test_docs.py",
    "docs/crd-upgrades.md console": "tests/cli/test_docs.py",
    "docs/crd-upgrades.md yaml": "tests/cli/test_docs.py",
    "docs/from-other-validators.md console": "tests/cli/test_docs.py",
    "docs/from-other-validators.md yaml widget.yaml": "tests/cli/test_docs.py",
    "docs/from-schemas.md console": "tests/cli/test_docs.py",
    "docs/from-schemas.md yaml": "tests/cli/test_docs.py",
    "docs/explore.md go": "tests/exploration/test_examples.py",
    "docs/policies.md yaml": "tests/admission/test_policies_docs.py",
    "docs/policies.md text": "tests/admission/test_policies_docs.py",
    "docs/quickstart.md": "tests/clients/test_quickstart_docs.py",
    "docs/recipes.md": "tests/testing/test_recipes.py",
    **{
        f"docs/tenants.md {language}": "tests/docs/test_tenants.py"
        for language in ("go", "java", "js", "rust", "python")
    },
    "docs/stages.md yaml apiVersion: noxu.dev/v1": "tests/workloads/stages/test_docs.py",
    "docs/stages.md yaml apiVersion: kwok.x-k8s.io/v1alpha1": "tests/workloads/stages/test_docs.py",
    "docs/controllers.md java": "tests/docs/test_projects.py",
    "docs/workloads.md console": "tests/clients/test_workloads.py",
    "docs/kuttl.md console": "tests/cli/test_docs.py",
    "docs/kuttl.md text": "tests/cli/test_docs.py",
    "docs/tests-of-crds.md console": "tests/cli/test_docs.py",
    "docs/tests-of-crds.md yaml widgets_test.yaml": "tests/cli/test_docs.py",
    "docs/testing.md python": "tests/testing/test_plugin.py",
}

# What is shown and cannot be run: the beginning of the name, and what it is.
SHOWN: Final = {
    "README.md text": "what the server prints, with a path of the reader",
    "docs/architecture.md text  change": "a picture",
    "docs/admission.md text Error from server": "the message of the example, which its test compares",
    "docs/etcd.md text python": "needs both API servers, each with an etcd",
    "docs/explore.md text": "the report of an exploration, which lasts a minute",
    "docs/explore.md go": "parts of the controller in tests/exploration/examples",
    "docs/explore.md yaml": "needs the files of a project; tests/exploration checks how such files are read",
    "docs/fake-clients.md text": "the log of client-go",
    "docs/workloads.md text": "what a benchmark prints on one machine",
    "docs/testing.md text": "the report of pytest, parts of which test_reports.py compares",
}

# -- languages


def python(block: Block) -> None:
    """It compiles; what it imports exists, and so do the attributes of the handle that it uses."""
    tree = ast.parse(block.text)
    handles = {"noxu"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "noxu":
            module = importlib.import_module(str(node.module))
            assert [each.name for each in node.names if not hasattr(module, each.name)] == []
        elif isinstance(node, ast.withitem) and isinstance(node.context_expr, ast.Call):
            called, target = node.context_expr.func, node.optional_vars
            if isinstance(called, ast.Name) and called.id == "Noxu" and isinstance(target, ast.Name):
                handles.add(target.id)
    known = {*dir(noxu.Noxu), *noxu.Noxu.__annotations__}
    assert [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if node.value.id in handles and node.attr not in known
    ] == []


async def manifests(block: Block) -> None:
    """Objects are accepted, as `noxu validate --strict` accepts them; other documents have a check of their own."""
    parts = split(block.text.encode())
    for part in parts:
        assert not part.error
        assert part.decoded is not None
        value = part.decoded.value
        if isinstance(value, dict) and value.get("kind") == "Policy":
            load(block.text.encode())
            return
        if not (isinstance(value, dict) and "kind" in value):
            assert any(is_meant(value) for is_meant in OTHER_DOCUMENTS), f"{block.name}: no object"
            return
    documents = [each for _, found in documents_of(parts, block.file or block.page) for each in found]
    outcomes = [outcome for _, outcome in await validate(Shard(documents), WriteRules(strict=True))]
    assert [outcome.error for outcome in outcomes if outcome.error] == []


def are_faults(value: object) -> bool:
    """A plan of faults, or one rule. Raises ApiError for what a server would refuse."""
    if not isinstance(value, dict) or not value.keys() & {"rules", "presets", *EFFECTS}:
        return False
    rules.parse(plans.checked(value if value.keys() & {"rules", "presets"} else [value]).rules)
    return True


OTHER_DOCUMENTS: Final[list[Callable[[object], bool]]] = [
    lambda value: isinstance(value, dict) and list(value) == ["scrape_configs"],  # Prometheus
    lambda value: isinstance(value, list) and all(set(step) <= {"run", "uses"} for step in value),  # GitHub
    are_faults,
]


def ini(block: Block) -> None:
    parser = configparser.ConfigParser()
    parser.read_string(block.text)
    assert parser.sections()


def go(block: Block) -> None:
    """It compiles in the suite of `test_go.py`, if its modules are in the cache. The first time may take long."""
    if not shutil.which("go"):
        skip_without_program("go")
    body = "".join(f"\t{line}\n" for line in block.text.splitlines())
    text = f"{GO_HEAD}{body}\t_ = cfg\n\treturn err\n}}\n"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("go.mod", "go.sum"):
            shutil.copy(SOURCES / file, folder)
        (folder / "documented.go").write_text(text)
        formatted = subprocess.run(["gofmt", "-l", "."], check=True, cwd=folder, capture_output=True, text=True)
        assert (formatted.stdout, formatted.stderr) == ("", "")
        environment = os.environ | OFFLINE
        built = subprocess.run(
            ["go", "build", "."],
            check=False,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT,
        )
    if "GOPROXY=off" in built.stderr or "requires go >=" in built.stderr:
        skip_without_program("go with controller-runtime in its module cache")
    assert built.returncode == 0, built.stderr


GO_HEAD: Final = """package suite

import (
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

var testEnv *envtest.Environment

func documented() error {
"""


def quoted(block: Block) -> None:
    """Messages of the program: each constant part of them is in its source."""
    parts = [part for line in block.text.splitlines() for part in constant_parts(VARYING.sub("…", line))]
    assert parts
    assert [part for part in parts if part not in source()] == []


VARYING: Final = re.compile(r"DIR/noxu.db|disk I/O error|\b[\d.:T-]+Z?\b|widgets\.example\.com|\bv\d\b|[{}\[\]]")


def tokens(block: Block) -> None:
    """Lines of a file of static tokens."""
    assert list(parse(block.text, block.name))


def log_lines(block: Block) -> None:
    """Lines of the server's log have a time; JSON has the names of the fields that are in the source."""
    for line in block.text.splitlines():
        if line.startswith("{"):
            assert [name for name in json.loads(line) if f'"{name}"' not in source()] == []
        else:
            assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (WARNING the history|system:anonymous \w+ /\S+ \d+ [\d.]+ms$)", line)  # fmt: skip


def powershell(block: Block) -> None:
    """Variables of the environment, and programs that the blocks of a shell have, too; those of noxu with valid arguments."""
    for line in block.text.splitlines():
        if re.fullmatch(r'\$env:[A-Z_]+ = ".+"', line):
            continue
        program, *arguments = shlex.split(line.replace("\\", "/"))
        assert program in ("py", "kubectl", ".venv/Scripts/pip", ".venv/Scripts/noxu", "noxu"), line
        if program.endswith("noxu"):
            cli.options_of(arguments[0], arguments[1:])


LANGUAGES: Final[dict[str, Callable[[Block], object]]] = {
    "python": python,
    "yaml": manifests,
    "json": lambda block: json.loads(block.text),
    "toml": lambda block: tomllib.loads(block.text),
    "ini": ini,
    "go": go,
    "powershell": powershell,
}
TEXTS: Final[dict[str, Callable[[Block], None]]] = {
    "docs/authentication.md text": tokens,
    "docs/cli.md text": quoted,
    "docs/logs.md text": log_lines,
    "docs/storage.md text": quoted,
}
"""The beginnings of the names of blocks of text, and what checks them."""


def is_held(block: Block) -> bool:
    """Whether another test runs the block, or a table says what it is."""
    return block.name in MESSAGES or block.language in SHELLS or block.name.startswith((*RUN_BY, *SHOWN))


def check_of(block: Block) -> Callable[[Block], object] | None:
    of_text = next((check for name, check in TEXTS.items() if block.name.startswith(name)), None)
    return of_text or LANGUAGES.get(block.language)


@pytest.mark.timeout(BUILD_TIMEOUT + 600)
@rows("block", [block for block in BLOCKS if not is_held(block)], ids=lambda block: block.name)
async def test_a_block_is_what_its_language_says(block: Block) -> None:
    await checked(block)


async def checked(block: Block) -> None:
    check = check_of(block)
    assert check, f"{block.page}:{block.line}: nothing checks or runs this block, and no table says why"
    result = check(block)
    if inspect.isawaitable(result):
        await result


def test_no_entry_of_a_table_is_without_a_use() -> None:
    names = [block.name for block in BLOCKS]
    for prefix in (*RUN_BY, *SHOWN, *TEXTS):
        assert any(name.startswith(prefix) for name in names), prefix
    assert [name for name in (*SESSIONS, *MESSAGES) if name not in names] == []


@rows(("blocks_of", "test"), RUN_BY.items(), ids=list(RUN_BY))
def test_the_test_that_runs_a_block_names_its_page(blocks_of: str, test: str) -> None:
    assert Path(blocks_of.split()[0]).name in (ROOT / test).read_text()


def test_all_pages_are_read() -> None:
    with_blocks = {block.page for block in BLOCKS}
    assert {str(path.relative_to(ROOT)) for path in PAGES if "```" in path.read_text()} == with_blocks
    assert len(BLOCKS) > 120


WRONG: Final = [
    ("python", "from noxu import Noxus\n"),
    ("python", "def test(noxu):\n    noxu.creat({})\n"),
    ("python", "with Noxu() as server:\n    server.creat({})\n"),
    ("python", "def test(:\n"),
    ("yaml", "a: [\n"),
    ("yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndatas: {}\n"),
    ("yaml", "scrape: []\n"),
    ("json", "{"),
    ("toml", "a = "),
    ("ini", "a = 1\n"),
    ("powershell", "export A=b\n"),
    ("powershell", ".venv\\Scripts\\noxu serve --memroy\n"),
]


@rows(("language", "text"), WRONG)
async def test_a_block_with_an_error_is_found(language: str, text: str) -> None:
    with pytest.raises((AssertionError, SyntaxError, ValueError, configparser.Error, SystemExit)):
        await checked(Block("docs/x.md", 1, language, "", text))


def test_a_block_in_another_language_is_found() -> None:
    block = Block("docs/x.md", 1, "ruby", "", "puts 1\n")
    assert (is_held(block), check_of(block)) == (False, None)
