"""PEM as Go reads it: `encoding/pem` has found the same blocks in every row."""

from __future__ import annotations

import time

import pytest

from noxu.go.pem import blocks, certificates, private_keys
from tests.rows import rows

A = "-----BEGIN A-----\nQUJD\n-----END A-----\n"
B = A.replace("A-----", "B-----")
BLOCKS: list[tuple[str, str, list[str]]] = [
    ("a block", A, ["A"]),
    ("two blocks", A + B, ["A", "B"]),
    ("text around them", f"x\n{A}y\n{B}z", ["A", "B"]),
    ("line ends of Windows", A.replace("\n", "\r\n"), ["A"]),
    ("a space before BEGIN", f" {A}", []),
    ("a NUL before BEGIN", f"\0{A}", []),
    ("a form feed before BEGIN", f"\f{A}", []),
    ("a form feed on its own line", f"\f\n{A}", ["A"]),
    ("text before BEGIN", f"x{A}{B}", ["B"]),
    ("a block in one line", "-----BEGIN A-----QUJD-----END A-----\n" + B, ["B"]),
    ("END in the line of the content", "-----BEGIN A-----\nQUJD-----END A-----\n" + B, ["B"]),
    ("a form feed in the content", A.replace("QUJD", "QU\fJD") + B, ["B"]),
    ("white space in the content", A.replace("QUJD", "QU \tJ\r\nD"), ["A"]),
    ("text behind END", A.replace("END A-----", "END A-----x") + B, ["B"]),
    ("white space behind END", A.replace("END A-----", "END A----- \t"), ["A"]),
    ("no line end behind END", A.strip(), ["A"]),
    ("END of another type", A.replace("END A", "END B") + B, ["B"]),
    ("BEGIN twice", f"-----BEGIN A-----\n{A}", ["A"]),
    ("BEGIN of another type", f"-----BEGIN B-----\n{A}", ["A"]),
    ("headers", A.replace("QUJD", "x: y\n\nQUJD"), ["A with headers"]),
    ("headers and nothing else", "-----BEGIN A-----\nx: y\n-----END A-----\n", []),
    ("no content", "-----BEGIN A-----\n-----END A-----\n", ["A"]),
    ("not base64", A.replace("QUJD", "QU%D"), []),
    ("a type with lower case and symbols", A.replace(" A-", " a_1.-"), ["a_1."]),
    ("the first END before the first BEGIN", f"-----END A-----\n{A}", ["A"]),
]


@rows(("text", "expected"), [row[1:] for row in BLOCKS], ids=[row[0] for row in BLOCKS])
def test_the_blocks_of(text: str, expected: list[str]) -> None:
    found = list(blocks(text.encode()))
    assert [f"{block.type} with headers" if block.has_headers else block.type for block in found] == expected
    assert {block.content for block in found} <= {b"ABC", b""}


def test_certificates_and_keys() -> None:
    text = A.replace(" A-", " CERTIFICATE-") + A.replace(" A-", " EC PRIVATE KEY-") + A.replace(" A-", " PRIVATE KEY-")
    assert (list(certificates(text.encode())), list(private_keys(text.encode()))) == ([b"ABC"], [b"ABC"] * 2)
    encrypted = text.replace("QUJD", "DEK-Info: x\n\nQUJD").encode()
    assert (list(certificates(encrypted)), list(private_keys(encrypted))) == ([], [])


@pytest.mark.parametrize("line", ["-----BEGIN A-----\n", "\n-----END A-----", "-----BEGIN A-----\nx: y\n", A, "x: y\n"])
def test_a_megabyte_takes_time_in_proportion(line: str) -> None:
    text = line.encode() * (1024 * 1024 // len(line))
    began = time.process_time()
    for _ in blocks(text):
        pass
    assert time.process_time() - began < 2
