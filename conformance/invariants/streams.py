"""Streams: what was given comes over whole and in order, and nobody takes a part for the whole."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.invariants.registry import Violation, invariant
from conformance.sweep.bases import Done
from conformance.sweep.case import Case
from conformance.sweep.facts import Flow

SLACK_S = 0.05


def _flows(case: Case, direction: str) -> Iterator[tuple[Done, Flow]]:
    """The streams of one direction, each with the op that it belongs to, where that can be told."""
    for done in case.ops:
        asks = case.model.ops.get(done.op)
        if asks is None or done.result is None:
            continue
        twins = [one for one in case.ops if one.op == done.op and one.args == done.args]
        for flow in case.facts.flows:
            asked = flow.question
            if flow.direction != direction or asked is None or len(twins) != 1 or asked.asked < done.begun:
                continue
            if isinstance(asked.frame, asks.kind) and asks.fits(done.args, asked.frame):
                yield done, flow


@invariant("streams-are-whole")
def streams_are_read_whole(case: Case) -> Iterator[Violation]:
    """A stream that the client was handed is returned whole and in order; one that breaks off is refused."""
    for done, flow in _flows(case, "out"):
        assert done.result is not None
        _, got = case.model.streamed(done.args, done.result)
        if done.ended is None:
            continue
        was_whole = flow.whole is not None and flow.whole < done.ended
        if done.result.ok and (not was_whole or flow.error is not None):
            yield f"{done.op} was ok, and its stream had not come to a proper end", done.ended
        elif done.result.ok and got != flow.body and case.is_truthful:
            yield f"{done.op} returned {got!r:.60}, what came was {flow.body!r:.60}", done.ended
        elif (
            was_whole
            and flow.is_sure
            and not done.result.ok
            and flow.error is None
            and _in_time(case, done, flow)
        ):
            yield f"{done.op} ended {done.result.word}, and its stream had come whole", flow.whole, done.ended


def _in_time(case: Case, done: Done, flow: Flow) -> bool:
    assert flow.whole is not None
    if any(done.begun < end.begun < flow.whole for end in case.done("close", "abort", "cancel")):
        return False
    return flow.whole.t < done.begun.t + done.timeout_s - SLACK_S - case.slack_s


@invariant("streams-are-whole")
def streams_are_written_whole(case: Case) -> Iterator[Violation]:
    """A stream that the application has given is written whole, in order, and once."""
    for done, flow in _flows(case, "in"):
        given, _ = case.model.streamed(done.args, None)
        assert done.result is not None
        if given is None or not given.startswith(flow.body):
            yield f"{done.op} has written {flow.body!r:.60}, given was {given!r:.60}", flow.begun
        elif done.result.ok and flow.error is None and flow.whole is not None and flow.body != given:
            yield f"{done.op} has written {len(flow.body)} bytes of {len(given)}", flow.whole
        elif done.result.ok and flow.whole is None and "early" not in case.notes:
            yield f"{done.op} was ok, and its stream was never ended", done.ended
