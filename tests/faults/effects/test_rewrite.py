"""Frames that are changed: rewrite, corrupt, truncate, extend."""

from __future__ import annotations

import pytest

from fakebrokers.errors import PlanError
from fakebrokers.faults import (
    corrupt,
    extend,
    reply,
    rewrite,
    truncate,
)
from tests.core.talk import Talk


def test_rewrite() -> None:
    talk = Talk(rewrite({"body": "other"}, kind="Value"))
    talk.send(b"put a x")
    assert talk.send(b"get a") == [b"value a other\n"]
    talk = Talk(rewrite(fields={"keys": ["z"]}, kind="Put"))
    assert talk.send(b"put a x") == [b"stored z\n"]


def test_rewrite_adds() -> None:
    talk = Talk(reply(3, kind="Put"), rewrite({"code": {"add": 4}}, kind="Refused"))
    assert talk.send(b"put a") == [b"refused a 3\n"]  # an answer of a fault is not touched again


def test_rewrite_knows_the_fields() -> None:
    with pytest.raises(PlanError, match=r"effect\.fields\.nope: expected one of keys; got 'nope'"):
        Talk(rewrite({"nope": 1}, kind="Stored"))


def test_corrupt() -> None:
    talk = Talk(corrupt(at=0, xor=0x20, kind="Stored"), corrupt(at=-2, xor=1, length=1, kind="Value"))
    assert talk.send(b"put a x", b"get a") == [b"Stored a\nvalue a y\n"]


def test_corrupt_in() -> None:
    talk = Talk(corrupt(at=4, xor=3, kind="Put"))
    assert talk.send(b"put a x") == [b"stored b\n"]


def test_corrupt_draws_its_place_from_the_seed() -> None:
    def place(seed: int) -> bytes:
        return Talk(corrupt(kind="Stored"), seed=seed).send(b"put abcdefgh")[0]

    assert place(1) == place(1)
    assert len({place(seed) for seed in range(10)}) > 3
    assert all(place(seed).startswith(b"stor") for seed in range(10))


def test_corrupt_has_one_place_in_one_byte() -> None:
    assert Talk(truncate(1, kind="Stored"), corrupt(xor=0x20, kind="Stored")).send(b"put a") == [b"S"]


def test_truncate() -> None:
    assert Talk(truncate(3, kind="Stored")).send(b"put a") == [b"sto"]
    assert Talk(truncate(keep=-2, kind="Stored")).send(b"put a") == [b"stored "]
    assert Talk(truncate(share=0.5, kind="Stored")).send(b"put a") == [b"stor"]
    assert Talk(truncate(kind="Put")).send(b"put a x") == []


def test_extend() -> None:
    assert Talk(extend("2121", kind="Stored")).send(b"put a") == [b"stored a\n!!"]
