"""The code blocks of the documentation, and the commands in those of a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("requirements/*.md")])
SHELLS: Final = ("sh", "console")
_FENCED: Final = re.compile(r"^( *)```(\w+)(?: file=(\S+))?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_STEP: Final = re.compile(r"^\$ (.*\n(?:> .*\n)*)((?:(?!\$ ).*\n)*)", re.MULTILINE)
_HERE_DOCUMENT: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_SEPARATOR: Final = re.compile(r"[<>]?[();&|]+")
_REDIRECTION: Final = re.compile(r"[<>]+")
_DUPLICATION: Final = re.compile(r"\d?[<>]&\d")  # 2>&1
_ASSIGNMENT: Final = re.compile(r"\w+=.*", re.DOTALL)


class Block(NamedTuple):
    """A block: the page and the line of its fence, its language, the file that it is, and its text."""

    page: str
    line: int
    language: str
    file: str
    text: str

    @property
    def name(self) -> str:
        """`docs/cli.md yaml crd.yaml`, or its first line: what does not change when other parts of the page do."""
        return f"{self.page} {self.language} {self.file or self.text.partition(chr(10))[0]}"


def blocks() -> Iterator[Block]:
    for path in PAGES:
        text = path.read_text()
        for found in _FENCED.finditer(text):
            indent, language, file, body = found.groups("")
            page, line = str(path.relative_to(ROOT)), text.count("\n", 0, found.start()) + 1
            yield Block(page, line, language, file, re.sub(rf"^{indent}", "", body, flags=re.MULTILINE))


def steps(text: str) -> list[tuple[str, str]]:
    """The commands of a console, each with what it prints."""
    return [(command.replace("\n> ", "\n"), printed) for command, printed in _STEP.findall(text)]


def script(block: Block) -> str:
    """The commands of a block."""
    return block.text if block.language == "sh" else "".join(command for command, _ in steps(block.text))


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command, without variables, redirections and the texts of here-documents.

    eval $(noxu envtest env) && A=b go test ./... > log 2>&1    →    [eval, $], [noxu, envtest, env], [go, test, ./...]
    """
    for statement in statements(text):
        words: list[str] = []
        for word in [*_words(statement.partition("\n")[0]), ";"]:
            if not _SEPARATOR.fullmatch(word):
                words.append(word)
            elif command := _command(words):
                yield command
                words = []
            else:
                words = []


def statements(text: str) -> Iterator[str]:
    """The logical lines of a script, each with its here-document."""
    rest = iter(text.replace("\\\n", " ").splitlines())
    for line in rest:
        lines = [line]
        for _, end in _HERE_DOCUMENT.findall(line.replace("<<<", "")):
            for inner in rest:
                lines.append(inner)
                if inner == end:
                    break
        yield "\n".join(lines)


def _words(line: str) -> list[str]:
    reader = shlex.shlex(_DUPLICATION.sub("", line), posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    return list(reader)


def _command(words: list[str]) -> list[str]:
    """A command without its redirections and the variables before it."""
    kept: list[str] = []
    skip = False
    for word in words:
        if _REDIRECTION.fullmatch(word):
            skip = True
        elif skip:
            skip = False
        elif kept or not _ASSIGNMENT.fullmatch(word):
            kept.append(word)
    return kept
