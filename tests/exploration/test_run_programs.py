"""What a program is called with; what is kept of the output of programs, and what of it is shown."""

from __future__ import annotations

from pathlib import Path

from noxu.exploration import report, run_programs
from noxu.exploration.recording import MAX_OUTPUT
from tests.rows import rows

CRASH = "panic: runtime error: invalid memory address"
REASON = "E: no matches for kind PodDisruptionBudget in version policy/v1beta1"
LINE = "goroutine 1 [running]: main.main()\n"
SHORT, LONG = "…\n", LINE * (2 * MAX_OUTPUT // len(LINE))


@rows(
    "said, first, last",
    [
        ("one\ntwo\n", "one", "two"),
        (f"{LONG}one\ntwo\n", LINE.strip(), "two"),
        (f"{REASON}\n{CRASH}\n{SHORT}", REASON, SHORT.strip()),
        (f"{LONG}{REASON}\n{CRASH}\n{SHORT}", LINE.strip(), SHORT.strip()),
        (f"{REASON}\n{CRASH}\n{LONG}", REASON, LINE.strip()),
        (f"{REASON}\n{CRASH}\n{LONG}exit: status 2\n", REASON, LINE.strip()),
    ],
    ids=["little", "much", "a short crash", "much and a crash", "a long crash", "a long crash and its end"],
)
def test_the_beginning_of_a_crash_is_kept_and_shown(tmp_path_factory: object, said: str, first: str, last: str) -> None:
    path = Path(tmp_path_factory.mktemp("output")) / "output"  # type: ignore[attr-defined]
    path.write_text(said, "utf-8")
    kept = run_programs.tail(path)
    assert len(kept) <= MAX_OUTPUT + len("\n…\n")
    lines = report.log_lines(kept)
    assert (lines[0], lines[-1]) == (first, last)
    assert (CRASH in lines) == (CRASH in said)


@rows(
    "word, becomes",
    [
        ("--kubeconfig=$KUBECONFIG", "--kubeconfig=/run/kubeconfig"),
        ("${HOME}/cache", "/run/home/cache"),
        ("$HOMES/$", "$HOMES/$"),
        ("$LEVEL", "2"),
        ("echo $$ ${PATH:-none}", "echo $$ ${PATH:-none}"),
    ],
    ids=["its kubeconfig", "in braces", "a longer name", "what explore.yaml gives it", "what is a shell's"],
)
def test_names_of_what_a_program_gets_are_replaced_in_its_command(word: str, becomes: str) -> None:
    environment = {"KUBECONFIG": "/run/kubeconfig", "HOME": "/run/home", "LEVEL": "2"}
    assert run_programs.replaced_words([word], environment) == [becomes]
