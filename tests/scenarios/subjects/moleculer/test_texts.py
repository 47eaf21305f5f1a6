"""Bodies as texts."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.clients.adapter.messages import Message
from conformance.clients.adapter.messages import body_bytes as bytes_of
from scenarios.moleculer.subject.texts import text_of, unwrapped


def message(body: Any) -> Message:
    return Message(ref="m1", sub="c1", target="orders", body=body)


def test_drawn_bytes_become_digits_of_the_same_number() -> None:
    drawn = [text_of({"gen": "rand", "seed": seed, "len": 65537}) for seed in (1, 2)]
    assert [len(text) for text in drawn] == [65537, 65537]
    assert drawn[0] != drawn[1]
    assert drawn[0] == text_of({"gen": "rand", "seed": 1, "len": 65537})
    assert text_of({"gen": "zero", "len": 5}) == "00000"


@pytest.mark.parametrize("text", ["", "x", "a\u00e4\u20ac\U0001f300", "\0\0"])
def test_other_bodies_are_texts_already(text: str) -> None:
    assert text_of(text) == text
    assert text_of(text.encode()) == text


@pytest.mark.parametrize(
    ("reported", "wanted"),
    [('"hello"', b"hello"), ('{"n": 1}', b'{"n": 1}'), ("no json", b"no json"), ("7", b"7")],
)
def test_a_text_in_json_is_taken_out(reported: str, wanted: bytes) -> None:
    assert bytes_of(unwrapped(message({"text": reported})).body) == wanted


def test_a_digest_stays() -> None:
    digest = {"sha256": "00", "len": 9000}
    assert unwrapped(message(digest)).body == digest
