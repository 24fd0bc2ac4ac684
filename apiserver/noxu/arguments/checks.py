"""The arguments of the commands without a server: validate, explain-write, lint, skeleton, test, generate,
stubs and docs.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

from noxu.arguments import etcd, values
from noxu.config import DEFAULT_DATA

COVERAGE_REPORTS: Final = "noxu.coverage.reports"
OUTPUTS: Final = ("text", "json", "junit", "sarif", "github")


def _add(command: argparse.ArgumentParser, what: str) -> None:
    """`what` is in the files."""
    command.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH", help=f"{what}: YAML or JSON files, directories, - for stdin"
    )
    values.repeated(command, "-f", "PATH", "the same", parse=Path, dest="named")
    values.repeated(command, "--old", "PATH", "the former objects, which those in the files update", parse=Path)
    command.add_argument(
        "--independent", action="store_true", help="objects of the same name in different files are no updates"
    )
    for option, what_happens in (
        ("--skip", "skip objects of these kinds"),
        ("--reject", "refuse objects of these kinds"),
    ):
        values.repeated(command, option, "KIND,...", f"{what_happens}: Pod, or apps/v1/Deployment", parse=values.kinds)
    command.add_argument("--allow-empty", action="store_true", help="a path without objects is not an error")
    command.add_argument(
        "--strict", action="store_true", help="unknown and duplicate fields, and what lint warns about, are errors"
    )
    command.add_argument(
        "-j",
        dest="jobs",
        type=values.jobs,
        metavar="N",
        help="check in N processes; 0: as many as there are processors (default: 1)",
    )
    command.add_argument(
        "--no-cache", action="store_true", help="neither use nor keep files and results in the user's cache"
    )
    command.add_argument("--output", choices=OUTPUTS, default="text", help="the output format (default: %(default)s)")


def _add_detail(command: argparse.ArgumentParser) -> None:
    """Add the options that choose what a report in text lists."""
    detail = command.add_mutually_exclusive_group()
    detail.add_argument(
        "--errors-only", action="store_true", help="list errors only; what has none, and warnings, are counted"
    )
    detail.add_argument(
        "--verbose",
        action="store_true",
        help="list everything: on a terminal, too, what has no findings; and warnings that repeat one by one",
    )


def _check_detail(options: argparse.Namespace) -> None:
    """Raises ValueError if they are given for another output."""
    if options.output != "text" and (options.errors_only or options.verbose):
        raise ValueError("--errors-only and --verbose are for --output text")


def _complete(options: argparse.Namespace) -> None:
    """Set `options.files` to all paths, `options.skip` and `options.reject` to all kinds, and `options.jobs` to their number."""
    options.jobs = options.jobs or 1
    options.files = [*options.paths, *options.named]
    options.skip = frozenset(kind for kinds in options.skip for kind in kinds)
    options.reject = frozenset(kind for kinds in options.reject for kind in kinds)


def _refuse(options: argparse.Namespace, names: Mapping[str, str], why: str) -> None:
    """Before `complete`. Raises ValueError if one of the options is given. `names` are those of their values."""
    present = [option for option, name in names.items() if getattr(options, name)]
    if present:
        raise ValueError(f"{present[0]}: {why}")


def _require_files(options: argparse.Namespace) -> None:
    """Raises ValueError if there is no path."""
    if not options.files:
        raise ValueError("give a PATH: a file, a directory, or - for stdin")


# -- noxu validate -----------------------------------------------------------------------------------------------------


_OF_FILES: Final = {
    "--old": "old",
    "--independent": "independent",
    "--skip": "skip",
    "--reject": "reject",
    "--allow-empty": "allow_empty",
    "--strict": "strict",
    "--schemas": "schemas",
    "--ignore-unknown-kinds": "ignore_unknown_kinds",
    "--create-namespace": "create_namespace",
    "--errors-only": "errors_only",
    "--verbose": "verbose",
    "--feature-gates": "feature_gates",
    "--kubernetes": "kubernetes",
    "-j": "jobs",
    "--no-cache": "no_cache",
}


def add_validate(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Validate objects without a server, as a server would. Exit status 1 if an object is refused, 2 if an input "
        "cannot be read."
    )
    _add(command, "CRDs and objects")
    _add_detail(command)
    values.repeated(
        command,
        "--schemas",
        "PATH",
        "JSON schemas of kinds without a CRD in the files: a directory, an archive or a file, as kubeconform and flux-schema name them",
        parse=Path,
    )
    command.add_argument(
        "--ignore-unknown-kinds", action="store_true", help="skip objects of kinds that no CRD in the files defines"
    )
    command.add_argument(
        "--create-namespace",
        action="store_true",
        help="as for noxu serve; namespaces that no file makes exist in any case",
    )
    values.feature_gates(command)
    values.kubernetes(command, several=True)
    values.quiet(command)
    stored = command.add_argument_group(
        "stored objects",
        "Find stored objects that their CRDs refuse. CRDs in files replace the stored ones.",
    )
    stored.add_argument("--stored", action="store_true", help="validate stored objects")
    values.server(stored).add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"the data directory, which no server may be using (default: {DEFAULT_DATA})",
    )
    etcd.add_etcd(command, "With --stored: the objects are in etcd. Servers that use it may run.", writes=False)


def complete_validate(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    if options.stored:
        _refuse(options, _OF_FILES, "stored objects are validated as they are; the option is for objects in files")
    values.set_features(options)
    _complete(options)
    _check_detail(options)
    if not options.stored and any(
        (options.data, options.server, options.kubeconfig, options.context, options.insecure_skip_tls_verify)
    ):
        raise ValueError("--data, --server, --kubeconfig, --context and --insecure-skip-tls-verify need --stored")
    options.etcd = etcd.etcd(options)
    if not options.stored and options.etcd is not None:
        raise ValueError("--etcd-servers needs --stored")
    values.check_location(options)
    values.check_server(options)
    if options.stored and options.output not in values.OUTPUTS:
        raise ValueError(f"--stored has no output format {options.output}")
    if not options.stored:
        _require_files(options)


# -- noxu lint ---------------------------------------------------------------------------------------------------------


def add_lint(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Find errors in CRDs of v1 or v1beta1 as a server would, and say how to fix them. "
        "Exit status 1 if a CRD is not structural, 2 if an input cannot be read."
    )
    command.add_argument("--fix", action="store_true", help="write the structural v1 form, if it is unambiguous")
    command.add_argument(
        "--in-place",
        action="store_true",
        help="with --fix: show the difference, keep the files as FILE.bak, and rewrite them",
    )
    command.add_argument("--diff", action="store_true", help="with --fix: show the difference only")
    _add(command, "CRDs")
    _add_detail(command)
    values.kubernetes(command, several=True)


def complete_lint(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    values.set_releases(options)
    _complete(options)
    _check_detail(options)
    _require_files(options)
    if (options.in_place or options.diff) and not options.fix:
        raise ValueError("--in-place and --diff need --fix")
    if options.in_place and options.diff:
        raise ValueError("--in-place and --diff exclude each other: --in-place shows the difference, too")
    if (options.in_place or options.diff) and (options.output != "text" or Path("-") in options.files):
        raise ValueError("--in-place and --diff cannot be combined with --output or stdin")


# -- noxu skeleton -----------------------------------------------------------------------------------------------------


def add_skeleton(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Print the skeletons of schemas, which determine what pruning keeps. Exit status 1 if a value would be a struct "
        "and a map at the same time, 2 if an input cannot be read."
    )
    _add(command, "CRDs or OpenAPI v3 schemas")


def complete_skeleton(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    _complete(options)
    _require_files(options)


# -- noxu explain-write ------------------------------------------------------------------------------------------------


_IN_MEMORY: Final = {
    "--old": "old",
    "--independent": "independent",
    "--feature-gates": "feature_gates",
    "--kubernetes": "kubernetes",
    "-j": "jobs",
}


def add_explain_write(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Show what each stage of a write does to objects, and why: what is pruned, defaulted, changed by admission, "
        "refused, or ignored by ratcheting. Exit status 1 if an object is refused, 2 if an input cannot be read."
    )
    _add(command, "objects, and without a server their CRDs")
    values.feature_gates(command)
    values.kubernetes(command, several=False)
    server = command.add_argument_group("running server", "Without a server the objects are written in memory.")
    values.server(server)
    server.add_argument("--write", action="store_true", help="write the objects; without it, the write is a dry run")


def complete_explain_write(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    if options.server or options.kubeconfig:
        _refuse(options, _IN_MEMORY, "the option is for writes in memory; these go to a server")
    values.set_features(options)
    values.check_server(options)
    _complete(options)
    _require_files(options)
    if options.write and not (options.server or options.kubeconfig):
        raise ValueError("--write needs a server: give --server or --kubeconfig")


# -- noxu generate -----------------------------------------------------------------------------------------------------


def add_generate(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Print objects that a CRD accepts by its schema and rules. Exit status 1 if none is found, 2 if an input cannot be "
        "read or does not define the kind."
    )
    command.add_argument("name", metavar="CRD", help="the name of the CRD, as widgets.example.com[/VERSION]")
    values.repeated(
        command, "-f", "PATH", "CRDs: YAML or JSON files, directories, - for stdin", parse=Path, dest="files"
    )
    command.add_argument("-n", dest="number", type=int, default=1, metavar="N", help="how many (default: %(default)s)")
    command.add_argument("--seed", default="0", help="another seed makes other objects (default: %(default)s)")
    command.add_argument("--invalid", action="store_true", help="objects that are refused, because one value is broken")


def complete_generate(options: argparse.Namespace) -> None:
    """Raises ValueError for a number or files that make no object."""
    if options.number < 1:
        raise ValueError("-n: give a number of at least 1")
    if not options.files:
        raise ValueError("give the CRDs with -f PATH: a file, a directory, or - for stdin")


# -- noxu test ---------------------------------------------------------------------------------------------------------


def add_test(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Run cases that lie beside manifests, without a server: what is written to a registry, and what should come of it. "
        "Exit status 1 if a case fails, 2 if one cannot be run."
    )
    command.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="PATH",
        help="files of cases, or directories with files *_test.yaml, or with tests of kuttl",
    )
    values.repeated(command, "--run", "TEXT", "run only cases whose names contain this", parse=str, dest="names")
    values.kubernetes(command, several=True, default="those that files give, or 1.37")
    command.add_argument(
        "--update", action="store_true", help="write what came into stored and converted of the cases where it differs"
    )
    command.add_argument(
        "--watch", action="store_true", help="run the files again that a changed file concerns, until Ctrl-C"
    )
    command.add_argument("--allow-empty", action="store_true", help="a path without cases is not an error")
    command.add_argument(
        "-j",
        dest="jobs",
        type=values.jobs,
        default=1,
        metavar="N",
        help="run files in N processes; 0: as many as there are processors (default: 1)",
    )
    command.add_argument("--verbose", action="store_true", help="list cases that pass, too")
    command.add_argument(
        "--nodes",
        type=values.nodes,
        metavar="NUMBER",
        help="tests of kuttl: nodes to simulate, with the controllers of workloads (default: neither)",
    )
    values.repeated(
        command,
        "-f",
        "PATH",
        "tests of kuttl: CRDs and other objects that each test begins with, beside those of kuttl-test.yaml",
        parse=Path,
        dest="given",
    )
    command.add_argument(
        "--coverage",
        action="store_true",
        help="report which fields, enum values, defaults and rules the cases have shown",
    )
    values.repeated(
        command,
        "--coverage-report",
        "TYPE",
        "the report: term (default), text:FILE, json:FILE, html:DIR",
        parse=str,
        dest="coverage_reports",
    )
    command.add_argument(
        "--coverage-fail-under", type=float, metavar="PERCENT", help="exit status 1 if less is covered"
    )
    command.add_argument("--output", choices=OUTPUTS, default="text", help="the output format (default: %(default)s)")


def complete_test(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    if not options.paths:
        raise ValueError("give a PATH: a file of cases, or a directory with files *_test.yaml")
    if options.update and options.watch:
        raise ValueError("--update and --watch exclude each other: a file that is written would be run again")
    if options.output != "text" and (options.watch or options.verbose):
        raise ValueError("--watch and --verbose are for --output text")
    if not options.coverage and (options.coverage_reports or options.coverage_fail_under is not None):
        raise ValueError("--coverage-report and --coverage-fail-under need --coverage")
    if options.coverage and options.watch:
        raise ValueError("--coverage and --watch exclude each other: a round runs only some of the cases")
    if options.coverage:
        wanted = import_module(COVERAGE_REPORTS).wanted
        options.coverage_reports = [wanted(text, Path()) for text in options.coverage_reports or ["term"]]


# -- noxu stubs --------------------------------------------------------------------------------------------------------


def add_stubs(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Write types of Python for the objects of CRDs: a TypedDict for each served version. Exit status 2 if an input cannot "
        "be read."
    )
    command.add_argument(
        "files", nargs="+", type=Path, metavar="PATH", help="CRDs: YAML or JSON files, directories, - for stdin"
    )
    command.add_argument("-o", dest="out", type=Path, metavar="FILE", help="the file (default: the standard output)")


# -- noxu docs ---------------------------------------------------------------------------------------------------------


def add_docs(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Write reference pages of the kinds that CRDs define: fields with types, defaults, limits and rules, and examples that "
        "are accepted. Exit status 2 if an input cannot be read, or has no CRD."
    )
    command.add_argument(
        "files", nargs="+", type=Path, metavar="PATH", help="CRDs: YAML or JSON files, directories, - for stdin"
    )
    command.add_argument(
        "-o", dest="out", type=Path, metavar="DIR", help="the directory (default: Markdown on the standard output)"
    )
