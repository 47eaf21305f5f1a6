"""Streams: what was given comes over whole and in order, and nobody takes a part for the whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.clients.adapter.messages import same_body
from conformance.rules.registry import Violation, invariant
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Flow, Question, Should
from conformance.run.showing import shown
from conformance.run.traits import Asks

SLACK_S = 0.05
UNREAD_MAX = 2 << 20  #: bytes; a transport keeps some, and a piece or two may be under way
ENDS_S = 5.0  #: after its op; a client may read on what the application gives it, and send it


def _flows(case: Case, direction: str) -> Iterator[tuple[RunOp, Flow]]:
    """The streams of one direction, each with the op that it belongs to, where it is known."""
    for done in case.ops:
        asks = case.traits.questions.ops.get(done.op)
        if asks is None or done.result is None:
            continue
        for flow in case.facts.flows:
            asked = flow.question
            if flow.direction != direction or asked is None or not isinstance(asked.frame, asks.kind):
                continue
            able = [one for one in case.done(done.op) if _may_ask(one, asked, asks)]
            if able == [done]:
                yield done, flow


def _may_ask(done: RunOp, question: Question, asks: Asks) -> bool:
    """Whether a question may be that of an op: it fits, and was asked while the op was open."""
    return (
        done.begun < question.asked
        and (done.ended is None or question.asked < done.ended)
        and asks.fits(done.args, question.frame)
    )


@invariant("streams-are-whole")
def streams_are_read_whole(case: Case) -> Iterator[Violation]:
    """A stream that came to the client is returned whole and in order; one that breaks off is an error. A
    piece that came twice may be there twice: some clients use the numbers of pieces for the order alone.
    Which of two ends counts is not judged.

    Why:
        A file that is cut or mixed up is taken for complete.

    Rests on:
        Moleculer: seq gives the order, the packet with `stream: false` the end, an error in it a broken
            stream (docs/protocols/moleculer.md, 4.9).

    Example:
        mol.call ended ok, and its stream had not come to a proper end.

    Judges:
        moleculer
    """
    for done, flow in _flows(case, "out"):
        assert done.result is not None
        _, got = case.traits.peers.streamed(done.args, done.result)
        if done.ended is None:
            continue
        was_whole = flow.whole is not None and flow.whole < done.ended
        if done.result.ok and (not was_whole or (flow.error is not None and not flow.has_two_ends)):
            yield f"{done.op} was ok, and its stream had not come to a proper end", done.ended
        elif done.result.ok and case.is_truthful and not _is_reported(got, flow):
            yield f"{done.op} returned {shown(got)}, what came was {shown(flow.body)}", done.ended
        elif (
            was_whole
            and flow.is_sure
            and not flow.has_two_ends
            and not done.result.ok
            and done.result.word != "cancelled"
            and flow.error is None
            and _in_time(case, done, flow)
        ):
            yield f"{done.op} ended {done.result.word}, and its stream had come whole", flow.whole, done.ended


def _is_reported(got: Mapping[str, Any] | None, flow: Flow) -> bool:
    """Whether a returned stream is the one that came."""
    return got is not None and (flow.is_doubled or same_body(got, flow.body))


def _in_time(case: Case, done: RunOp, flow: Flow) -> bool:
    assert flow.whole is not None
    if flow.question is not None and case.may_be_unread(flow.question.conn, flow.whole):
        return False
    if any(done.begun < end.begun < flow.whole for end in case.done("close", "abort", "cancel")):
        return False
    return flow.whole.t < done.begun.t + done.timeout_s - SLACK_S - case.slack_s


@invariant("streams-are-whole")
def streams_are_written_whole(case: Case) -> Iterator[Violation]:
    """A stream that the application has given is written whole, in order, and once."""
    for done, flow in _flows(case, "in"):
        given, _ = case.traits.peers.streamed(done.args, None)
        broke = case.traits.peers.breaks(done.args)
        assert done.result is not None
        if given is None or not given.startswith(flow.body):
            text = f"{done.op} has written {shown(flow.body)}, the application gave {shown(given)}"
            yield text, flow.begun
        elif flow.whole is not None and flow.error is None and flow.body != given:
            text = f"{done.op} has written {len(flow.body)} bytes of {len(given)}"
            yield f"{text}, and its stream ends as if that were all", flow.whole
        elif flow.whole is not None and flow.error is None and broke:
            text = f"the source of {done.op} failed with {shown(broke)}"
            yield f"{text}, and its stream ends as if nothing were wrong", flow.whole
        elif flow.whole is not None and broke and flow.body == given and broke not in flow.words:
            text = f"the source of {done.op} failed with {shown(broke)}"
            yield f"{text}, and its stream ends with {shown(flow.error)}", flow.whole
        elif done.result.ok and flow.whole is None and not case.notes.early:
            yield f"{done.op} was ok, and its stream was never ended", done.ended


@invariant("streams-wait")
def streams_wait(case: Case) -> Iterator[Violation]:
    """A stream waits while the server does not read: it may be larger than the memory of the client.

    Why:
        An upload to a slow receiver ends the process for lack of memory.

    Rests on:
        common sense: a TCP sender that is not read stops; a client that goes on fills its own buffers. Node
            calls it backpressure.

    Example:
        8388608 bytes were written in 5 s in which the server did not read.

    Judges:
        moleculer
    """
    since_s, until_s = case.notes.unread
    if until_s <= since_s or not any(flow.direction == "in" for flow in case.facts.flows):
        return
    written = sum(len(row.data) for row in case.rows if row.what == "in" and since_s <= row.t < until_s)
    if written > UNREAD_MAX:
        yield (
            f"{written} bytes were written in {until_s - since_s:g} s in which the server did not read",
            None,
        )


@invariant("streams-are-whole")
def streams_that_are_begun_are_ended(case: Case) -> Iterator[Violation]:
    """A stream that the client has begun is ended also if its op fails: the receiver waits for the end."""
    closing = case.mark("close")
    if closing is None:
        return
    for done, flow in _flows(case, "in"):
        assert flow.question is not None and done.result is not None
        over = done.ended is not None and done.ended.t + ENDS_S + case.slack_s < closing.t
        if over and flow.last is None and flow.question.conn.serves(closing):
            yield f"{done.op} ended {done.result}, and its stream was never ended", flow.begun, done.ended
        elif over and done.ended is not None and flow.whole is not None and not case.touched:
            late_s = flow.whole.t - done.ended.t
            if late_s > ENDS_S + case.slack_s and not done.result.ok:
                text = f"{done.op} ended {done.result}, and its stream was sent for {late_s:.1f} s after that"
                yield Should(text), flow.whole
