"""The commands, and the modules of their arguments.

The arguments of a command are in the module of this package that has its name: `add(parser)` adds them, and
`complete(options)`, which not all have, raises ValueError for combinations that are invalid. Only the module of the
command that is run is imported.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Final

COMMANDS: Final = {
    "serve": "run the server",
    "envtest": "write the programs that envtest starts",
    "validate": "validate objects without a server",
    "explain-write": "show what each stage of a write does to objects",
    "lint": "check that CRDs are structural, and fix them",
    "skeleton": "print the skeletons of schemas, which determine pruning",
    "migrate": "rewrite stored objects in their storage version",
    "check": "verify what is stored",
    "copy": "copy stored objects between data directories, files and etcd",
    "snapshot": "copy stored objects into a file",
    "export": "write objects as YAML that kubectl applies",
    "completion": "print what completes commands and options in a shell",
    "version": "print the version",
    "help": "describe a command",
}


def arguments_of(name: str) -> ModuleType:
    """The module with the arguments of a command."""
    return import_module(f"noxu.arguments.{name.replace('-', '_')}")
