"""Commands about the program itself: `noxu completion`, `noxu help` and `noxu version`.

`noxu completion` prints a script with which a shell completes command lines. The script asks `noxu __complete WORD...`
for the words that may replace the last one, which is unfinished. Each line of the answer is a word, a tab and a
description; `:files` means that files complete it, too.

    $ noxu __complete serve --log js
    json
    $ noxu __complete serve ./
    :files
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Sequence
from typing import Final

from noxu.arguments.commands import COMMANDS, RUNS_A_COMMAND
from noxu.arguments.parsers import Parser, parser, parser_of
from noxu.config import KUBERNETES_VERSION, own_version

# -- noxu completion ---------------------------------------------------------------------------------------------------


COMPLETE: Final = "__complete"
"""The command that the scripts call."""
FILES: Final = ":files"
_OF_FILES: Final = frozenset({"FILE", "DIR", "PATH", "STORE"})  # what the help calls values that are paths, or may be


def run_completion(options: argparse.Namespace) -> int:
    """Exit status 0."""
    print(SCRIPTS[options.shell], end="")
    return 0


def candidates(words: Sequence[str]) -> list[str]:
    """The lines of the answer for the words after `noxu`."""
    *before, current = words or [""]
    if not before:
        return _starting(current, [*COMMANDS.items(), ("--help", ""), ("--version", "")])
    if before[0] not in COMMANDS:
        return []
    if before[0] in RUNS_A_COMMAND and "--" in before:
        return [FILES]
    command = parser_of(before[0])
    option, typed = _option_before(command, before[1:], current)
    if option is not None:
        return _values(option, typed, current.removesuffix(typed))
    if current.startswith("-"):
        return _starting(current, [(name, _summary(action)) for name, action in command.options.items()])
    return [line for action in command.positional for line in _values(action, current, "")]


def _option_before(command: Parser, before: Sequence[str], current: str) -> tuple[argparse.Action | None, str]:
    """The option whose value is being typed, and what has been typed of the value: `--o v`, `--o=v`, in bash `--o = v`."""
    options = command.options
    name, separator, typed = current.partition("=")
    if separator and name in options:
        return options[name], typed
    if current == "=" and before and before[-1] in options:
        return options[before[-1]], ""
    last = before[-2] if len(before) > 1 and before[-1] == "=" else before[-1] if before else ""
    action = options.get(last)
    return (action, current) if action is not None and action.nargs != 0 else (None, "")


def _values(action: argparse.Action, typed: str, prefix: str) -> list[str]:
    """The values of an argument, each after what stands before it in the same word."""
    if action.choices is not None:
        typed = "" if typed == "=" else typed
        return [
            f"{prefix if prefix != '=' else ''}{line}"
            for line in _starting(typed, [(str(value), "") for value in action.choices])
        ]
    return [FILES] if action.metavar in _OF_FILES else []


def _starting(typed: str, words: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{word}\t{what}".rstrip() for word, what in words if word.startswith(typed)]


def _summary(action: argparse.Action) -> str:
    """The first part of an option's help."""
    return (action.help or "").partition(":")[0].partition(";")[0].partition(" (default")[0].replace("\n", " ")


SCRIPTS: Final = {
    "bash": r"""# source <(noxu completion bash)
_noxu() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        if [ "$line" = :files ]; then
            compopt -o default
        else
            COMPREPLY+=("${line%%$'\t'*}")
        fi
    done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _noxu noxu
""",
    "zsh": r"""#compdef noxu
# source <(noxu completion zsh)
_noxu() {
    local line
    local -a found
    for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        if [[ "$line" == :files ]]; then
            _files
        elif [[ "$line" == *$'\t'* ]]; then
            found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
        elif [[ -n "$line" ]]; then
            found+=("${line//:/\\:}")
        fi
    done
    (( $#found )) && _describe noxu found
}
compdef _noxu noxu
""",
    "fish": r"""# noxu completion fish > ~/.config/fish/completions/noxu.fish
function __noxu_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path (commandline -ct)
        else
            printf '%s\n' $line
        end
    end
end
complete -c noxu -f -a '(__noxu_complete)'
""",
}


# -- noxu help ---------------------------------------------------------------------------------------------------------


def run_help(options: argparse.Namespace) -> int:
    """Exit status 0."""
    (parser_of(options.about) if options.about else parser()).print_help()
    return 0


# -- noxu version ------------------------------------------------------------------------------------------------------


def run_version(options: argparse.Namespace) -> int:
    """Exit status 0."""
    versions = {
        "noxu": own_version(),
        "kubernetes": KUBERNETES_VERSION,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }
    if options.output == "json":
        print(json.dumps(versions, indent=2))
    else:
        print("\n".join(f"{name} {value}" for name, value in versions.items()))
    return 0
