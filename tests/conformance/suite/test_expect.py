"""Criteria and their ids."""

from __future__ import annotations

from inspect import Parameter, signature

import pytest

from conformance.suite.expect import ID_LENGTH, Expect, Inconclusive, SetupFailed, Violated, slug

MADE = [
    *(getattr(Expect, name) for name in vars(Expect) if not name.startswith("_") and name != "prepared"),
    Violated,
    SetupFailed,
    Inconclusive,
]


@pytest.mark.parametrize(
    "act", [act for act in MADE if callable(act) and {"criterion", "what"} & {*signature(act).parameters}]
)
def test_no_criterion_is_without_an_id(act: type[Violated]) -> None:
    assert signature(act).parameters["id"].default is Parameter.empty


def test_the_words_make_no_id() -> None:
    expect = Expect()
    for words in ("the message is acked", "better words"):
        with pytest.raises(Violated, match=words) as caught:
            expect.that(False, words, id="is-acked")
        assert caught.value.id == "is-acked"
    expect.tolerate(False, "words", id="is-quick")
    assert expect.tolerated_ids == ["is-quick"]


def test_the_case_is_part_of_the_id() -> None:
    assert slug("{}-ends-as-{}", "Create lost", "timeout") == "create-lost-ends-as-timeout"
    assert slug("{}the-process-lives-on", "seed 14: ") == "seed-n-the-process-lives-on"
    long = slug("{}-ends", "one " * 40)
    assert len(long) <= ID_LENGTH and long.endswith("one")
