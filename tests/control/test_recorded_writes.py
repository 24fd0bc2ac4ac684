"""What is recorded of a write, as a note in a file and back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from noxu.control.recorded_writes import RecordedWrite, from_note, to_note
from noxu.registry.authors import Author, WatchScope
from noxu_storage.notes import RevisionNote
from noxu_storage.types import Key
from tests.rows import rows

TEXT = st.text(st.characters(codec="utf-8"), max_size=5)
REVISION = st.integers(0, 2**53)
SCOPE = st.builds(WatchScope, TEXT, st.none() | TEXT, TEXT, TEXT, TEXT)
KEY = st.builds(Key, TEXT, TEXT, TEXT)
AUTHOR = st.builds(
    lambda texts, followed: Author(*texts)._replace(
        watching=tuple((scope, since) for scope, since, _ in followed), shown=tuple(upto for *_, upto in followed)
    ),
    st.lists(TEXT, min_size=8, max_size=8),
    st.lists(st.tuples(SCOPE, REVISION, REVISION), max_size=3),
)
WRITE = st.builds(
    RecordedWrite,
    REVISION,
    st.floats(0, 1e10),
    AUTHOR,
    st.lists(st.tuples(KEY | SCOPE, REVISION), max_size=3).map(tuple),
    REVISION,
)


@given(WRITE)
def test_a_write_is_what_its_note_says(write: RecordedWrite) -> None:
    assert from_note(to_note(write)) == write


@rows("text", [b"", b"null", b"{}", b"[]", b'["a"]', b'["","","","","","","","",[],[],"x"]', b"\xff"])
def test_what_is_no_note(text: bytes) -> None:
    assert from_note(RevisionNote(2, 0.0, text)) is None


def test_the_time_of_a_write() -> None:
    assert RecordedWrite(2, 0.5, Author()).time.isoformat() == "1970-01-01T00:00:00.500000+00:00"
