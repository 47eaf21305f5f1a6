"""Keys of every type, from the frame to the row, and batches whose items differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.core.frames import Frame, FrameSpec, Items, KeyType, Role, frame_table
from fakebrokers.journal import Journal, RunJournal, Tap
from fakebrokers.journal.keys import key_text
from fakebrokers.journal.rows import FrameRow

GUIDS = bytes(range(32))
TWO = (GUIDS[:16], GUIDS[16:])
SHOWN = tuple(f"0x{guid.hex()}" for guid in TWO)


class Packed(Items):
    def count(self, frame: Any) -> int:
        return len(frame.guids) // 16

    def keys(self, frame: Any) -> Sequence[bytes]:
        return [frame.guids[at : at + 16] for at in range(0, len(frame.guids), 16)]


class Several(Items):
    def count(self, frame: Any) -> int:
        return len(frame.keys)

    def keys(self, frame: Any) -> Sequence[Any]:
        return tuple(frame.keys)


class Unheld(Items):
    """No field holds the keys."""

    def count(self, frame: Any) -> int:
        return len(frame.keys.split())

    def keys(self, frame: Any) -> Sequence[str]:
        return tuple(frame.keys.split())


class Mixed(Several):
    mixed = True
    roles = (Role.REJECT,)

    def role(self, frame: Any, index: int) -> Role | None:
        return Role.REJECT if frame.codes[index] else None

    def status(self, frame: Any, index: int) -> int:
        return int(frame.codes[index])

    def scope(self, frame: Any, index: int) -> int | None:
        return frame.queues[index] if frame.queues else None


class AckEvent(Frame, frozen=True):
    spec = FrameSpec(Role.CONFIRM, "guids", Packed(), keys=KeyType.BYTES16, bulk=("body",))
    guids: bytes
    body: bytes = b""


class Bytes(Frame, frozen=True):
    spec = FrameSpec(Role.DELIVER, "keys", Several(), keys=KeyType.BYTES)
    keys: tuple[bytes, ...]


class Texts(Frame, frozen=True):
    spec = FrameSpec(Role.DELIVER, "keys", Several(), keys=KeyType.TEXT)
    keys: tuple[str, ...]


class Words(Frame, frozen=True):
    spec = FrameSpec(Role.DELIVER, None, Unheld(), keys=KeyType.TEXT)
    keys: str


class Requests(Frame, frozen=True):
    spec = FrameSpec(Role.REQUEST, "keys", Several(), keys=KeyType.TUPLE)
    keys: tuple[tuple[Any, ...], ...]


class Request(Frame, frozen=True):
    spec = FrameSpec(Role.REQUEST, "key", keys=KeyType.TUPLE)
    key: tuple[Any, ...]


class Packet(Frame, frozen=True):
    kind = "PACKET"
    spec = FrameSpec({"in": Role.PUBLISH, "out": Role.DELIVER}, "key", keys=KeyType.TEXT)
    key: str


class Answers(Frame, frozen=True):
    spec = FrameSpec(Role.CONFIRM, "keys", Mixed(), keys=KeyType.TEXT, bulk=("body",))
    keys: tuple[str, ...]
    codes: tuple[int, ...]
    queues: tuple[int, ...] = ()
    body: bytes = b""


class Puts(Frame, frozen=True):
    spec = FrameSpec(Role.PUBLISH, "keys", Several(), keys=KeyType.TEXT)
    keys: tuple[str, ...]


FRAMES = frame_table([AckEvent, Bytes, Texts, Words, Requests, Request, Packet, Answers, Puts])
MIXED = Answers(("g1", "g2", "g3", "g4"), (0, 5, 0, 5), (1, 1, 2, 1))


def journal_of(
    *frames: Frame, tap: Tap = Tap.OUT, full: bool = False, size: int = 80
) -> tuple[Journal, list[FrameRow]]:
    """The journal in memory, and the rows that would be on disk."""
    journal = Journal(FRAMES, body_limit=10)
    journal.sink = run = RunJournal(None, "r", frames=full)
    for frame in frames:
        journal.add(1.0, "c1", tap, frame, size, "fault")
    journal.flush()
    return journal, run.log().frames


@pytest.mark.parametrize("size", [8, 80])
def test_packed_guids_are_cut_by_their_width(size: int) -> None:
    journal, (row,) = journal_of(AckEvent(GUIDS, b"x"), size=size)
    (record,) = journal.records()
    assert record.keys == TWO
    assert (record.frame is None) == (size == 80)  # too large to be kept
    assert (row.items, row.keys, row.key_first, row.key_type) == (2, SHOWN, None, "bytes16")


@pytest.mark.parametrize(
    ("frame", "keys", "kind"),
    [
        (AckEvent(GUIDS[:-1]), SHOWN[:1], "bytes16"),
        (Bytes((b"a", b"\xff", b"0x61")), ("a", "0xff", "0x30783631"), "bytes"),
        (Texts(("a", "7")), ("a", "7"), "text"),
        (Words("a b"), ("a", "b"), "text"),
        (Requests((("n", 1), ("n,1",))), ("n,1", "n\\,1"), "tuple"),
        (Requests((("n", 1),)), ("n,1",), "tuple"),
        (Request(("node", 7, b"\x00")), ("node,7,0x00",), "tuple"),
        (Request((("a", 1), ("b", 2))), ("a\\,1,b\\,2",), "tuple"),
        (Packet("7"), ("7",), "text"),
    ],
)
def test_keys_of_each_type_become_rows(frame: Frame, keys: tuple[str, ...], kind: str) -> None:
    journal, (row,) = journal_of(frame)
    assert (row.items, row.keys, row.key_first, row.key_type) == (len(keys), keys, None, kind)
    (record,) = journal.records()
    if not isinstance(frame, AckEvent):
        assert tuple(key_text(key, kind) for key in record.keys) == keys


def test_a_key_that_is_a_tuple_is_one_key() -> None:
    journal, _ = journal_of(Request(("node", 7)))
    assert journal.records()[0].keys == (("node", 7),)


parts = st.integers(-5, 1 << 65).map(str) | st.text(max_size=4) | st.sampled_from([",", "\\", "a,b", "\\,"])
tuples = st.lists(parts, min_size=1, max_size=3).map(tuple)


@given(st.lists(tuples, unique=True, max_size=30))
def test_different_tuples_have_different_texts(keys: list[tuple[str, ...]]) -> None:
    assert len({key_text(key, KeyType.TUPLE) for key in keys}) == len(keys)


@given(st.lists(st.binary(max_size=3) | st.sampled_from([b"0x00", b"0x", b"0x61"]), unique=True))
def test_different_bytes_have_different_texts(keys: list[bytes]) -> None:
    assert len({key_text(key, KeyType.BYTES) for key in keys}) == len(keys)


def test_the_role_depends_on_the_direction() -> None:
    for tap, role in ((Tap.IN, "publish"), (Tap.SAID, "deliver")):
        journal, (row,) = journal_of(Packet("k"), tap=tap)
        assert (journal.records()[0].role, row.role) == (role, role)
        assert (journal.records()[0].kind, row.kind) == ("PACKET", "PACKET")


# batches whose items differ


@pytest.mark.parametrize("size", [8, 80])
def test_a_mixed_batch_is_a_row_for_each_part(size: int) -> None:
    journal, rows = journal_of(Puts(("g1",)), MIXED, Puts(("g2",)), size=size)
    assert [(r.seq, r.part, r.role, r.status, r.scope, r.keys, r.items, r.size) for r in rows] == [
        (1, 0, "publish", None, "", ("g1",), 1, size),
        (2, 0, "confirm", 0, "1", ("g1",), 1, size),
        (3, 1, "reject", 5, "1", ("g2", "g4"), 2, 0),
        (4, 2, "confirm", 0, "2", ("g3",), 1, 0),
        (5, 0, "publish", None, "", ("g2",), 1, size),
    ]
    assert {(row.fault, row.kind) for row in rows[1:4]} == {("fault", "Answers")}
    record = journal.records()[1]
    assert [(r.role, r.status, r.keys, r.size) for r in record.split()] == [
        (row.role, row.status, row.keys, row.size) for row in rows[1:4]
    ]
    assert "2 x reject (status 5)" in str(record)


def test_fields_are_shown_once() -> None:
    _, rows = journal_of(MIXED, full=True)
    assert json.loads(rows[0].frame or "")["codes"] == [0, 5, 0, 5]
    assert [row.frame for row in rows[1:]] == [None, None]


def test_a_mixed_batch_without_items_is_a_row_too() -> None:
    journal, (row,) = journal_of(Answers((), (), ()))
    assert (row.role, row.items, row.keys, row.part, row.size) == ("confirm", 0, (), 0, 80)
    assert journal.records()[0].role == "confirm"


@pytest.mark.parametrize(("code", "role"), [(0, "confirm"), (5, "reject")])
def test_a_batch_whose_items_agree_has_their_role(code: int, role: str) -> None:
    journal, (row,) = journal_of(Answers(("a", "b"), (code, code), (1, 1)))
    (record,) = journal.records()
    assert (record.role, record.status) == (row.role, row.status) == (role, code)


@pytest.mark.parametrize("size", [8, 80])
def test_a_frame_is_found_by_the_role_of_any_item(size: int) -> None:
    journal, _ = journal_of(Puts(("g1",)), MIXED, size=size)
    for role in ("confirm", "reject"):
        assert [record.kind for record in journal.select(role=role)] == ["Answers"]
    assert [record.kind for record in journal.select(role="publish")] == ["Puts"]
    assert journal.select(role="deliver") == []
