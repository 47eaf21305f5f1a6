"""Moleculer in the sweep: its decoder, the gate, and the rules that only its defects break."""

from __future__ import annotations

import itertools

import pytest

from conformance.invariants import judge
from conformance.sweep.acts.inside import opened
from conformance.sweep.order import Order
from conformance.sweep.run import runner
from conformance.sweep.specs import Bend, Spec
from conformance.sweep.sweep import Sweep
from conformance.sweep.universe import universe
from fakebrokers.core.frames import Malformed, kind_of
from scenarios.moleculer.sweep.model import MODEL
from scenarios.moleculer.sweep.reading import ReadingCodec

PROTOCOL = "moleculer"
SPECS = 200
INFO = b'MSG MOL.INFO 4 26\r\n{"ver":"5","sender":"peer"}\r\n'.replace(b" 26", b" 27")


def test_the_correct_client_violates_nothing() -> None:
    sweep = Sweep(runner(PROTOCOL))
    sweep.go(itertools.islice(Order(universe(PROTOCOL)), SPECS), seconds=120.0)
    found = [
        f"{failure.spec}: {finding}" for failure in sweep.failures.values() for finding in failure.findings
    ]
    assert not found, "\n".join(found)
    assert sweep.runs == SPECS


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_lines_that_nobody_knows_are_skipped(size: int) -> None:
    data = b"NONSENSE\r\n" + INFO + b"PING\r\n"
    codec = ReadingCodec("client")
    frames = [frame for at in range(0, len(data), size) for frame, _ in codec.feed(data[at : at + size])]
    assert [kind_of(opened(frame)) for frame in frames] == ["Malformed", "Info", "NatsPing"]
    assert isinstance(frames[0], Malformed) and not MODEL.is_garbage(frames[0])


def test_a_wrong_size_is_the_end() -> None:
    codec = ReadingCodec("client")
    [(frame, _)] = list(codec.feed(INFO.replace(b" 27", b" 20") + INFO))
    assert isinstance(frame, Malformed) and MODEL.is_garbage(frame)
    assert codec.partial == 0


@pytest.mark.parametrize(
    ("invariant", "mutant", "base", "bend"),
    [
        ("answers-what-was-asked", "answers-without-data", "serve", None),
        ("answers-questions", "deaf-while-stopping", "closing", None),
        ("knows-who-is-there", "deaf-to-disconnect", "peers", None),
        ("surfaces-what-came", "star-is-greedy", "events", None),
        ("tells-its-deadline", "timeout-in-seconds", "call", None),
        ("comes-back", "ignores-namespace", "namespaces", None),
    ],
)
def test_a_defect_is_found_by_the_rule_that_it_breaks(
    invariant: str, mutant: str, base: str, bend: Bend | None
) -> None:
    spec = Spec(PROTOCOL, base, () if bend is None else (bend,))
    assert invariant in [finding.name for finding in judge(runner(PROTOCOL, mutant)(spec))]
    assert judge(runner(PROTOCOL)(spec)) == []
