"""What a node has to answer to what it is asked, as far as base scripts say what their actions do.

The service is called ``s`` in all of them, if with something before it, and its actions by what they do
(docs/protocols/moleculer.md, 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from conformance.clients.adapter.messages import body_bytes, same_body
from conformance.run.bases import RunOp
from conformance.run.facts import Facts
from conformance.run.showing import shown
from conformance.run.trace import Position
from fakebrokers.core.frames import Frame
from fakebrokers.moleculer.packets import Info, Ping, Pong, Request, Response
from scenarios.moleculer.sweep.contents import bytes_of, code_of, is_first, words_in

ACTIONS: Mapping[str, Any] = {
    "echo": "echo",
    "fail": {"throw": {"message": "no", "code": 422}},
    "slow": {"sleep_ms": 200},
    "value": {"return": {"text": "äöü€", "large": 2**53 + 1, "none": None}},
}
#: Actions that fail; what an error says is what its caller gets.
THROWN: Mapping[str, Any] = {
    "coded": {"throw": {"message": "no", "code": 422, "type": "NO_SUCH", "data": {"id": 7, "ä": None}}},
    "worded": {"throw": {"message": "äöü € \U0001f600", "code": 409, "type": "A.B", "data": [0, False, ""]}},
    "falsy": {"throw": {"message": "", "code": 410, "data": 0}},
    "large": {"throw": {"message": "x" * 5000, "code": 599, "type": "LARGE", "data": 2**53 + 1}},
}
FAILED, NOT_FOUND, TOO_LATE = 422, 404, 504
CHANGE_S = 5.0  #: what an announcement may come after what it announces
SLACK_S = 0.3  #: what may lie between the question as it was written and as it was read


def wrong_answer(asked: Frame, answer: Any, after_s: float) -> str:
    """What is wrong with an answer of the client, so long after its question; "" if nothing is."""
    if isinstance(asked, Ping) and isinstance(answer, Pong):
        reported, given = (None if one.time is UNSET else one.time for one in (answer, asked))
        fits = given is None or reported == given
        return "" if fits else f"the PONG has the time {shown(reported)}, its PING had {shown(given)}"
    if isinstance(answer, Info):
        return "" if isinstance(answer.services, list) else f"services of INFO is {shown(answer.services)}"
    if isinstance(asked, Request) and isinstance(answer, Response):
        return _too_soon(asked, answer, after_s) or _wrong_response(asked, answer)
    return ""


def _too_soon(asked: Request, answer: Response, after_s: float) -> str:
    """Only what has taken too long is called so."""
    code = answer.error.get("code") if isinstance(answer.error, Mapping) else None
    limit_s = asked.timeout / 1000 if isinstance(asked.timeout, int | float) else 0
    if answer.success is not False or code != TOO_LATE or asked.action != "s.slow":
        return ""
    if 0 < limit_s <= after_s + SLACK_S:
        return ""
    limit = f"a timeout of {shown(asked.timeout)} ms"
    return f"{asked.action} with {limit} was answered with a time-out after {after_s:.3f} s"


def _late(asked: Request, answer: Response) -> str:
    """The caller may have given up by then; if it gets an answer, it is the time-out."""
    code = answer.error.get("code") if isinstance(answer.error, Mapping) else None
    if answer.success is not False or code in (TOO_LATE, NOT_FOUND):
        return ""
    return f"{asked.action} took too long, and was answered with code {code}"


def _wrong_response(asked: Request, answer: Response) -> str:
    if not isinstance(asked.action, str):
        return ""
    service, _, action = asked.action.rpartition(".")
    service = service.rpartition(".")[2]  # a name may have dots, as that of a service with a version has
    if (isinstance(asked.timeout, int | float) and 0 < asked.timeout < 1000) or service != "s":
        return _late(asked, answer) if service == "s" and action == "slow" else ""
    if answer.success is True and action in ("echo", "slow", "value"):
        return _wrong_data(asked, answer, action) or _wrong_meta(asked, answer)
    if action not in ("fail", "nowhere"):
        is_stream = answer.success is True and answer.stream is True
        return _wrong_meta(asked, answer) if is_stream else ""
    code = answer.error.get("code") if isinstance(answer.error, Mapping) else None
    codes = (FAILED, NOT_FOUND) if action == "fail" else (NOT_FOUND,)
    if answer.success is not False or code not in codes:
        return f"{asked.action} was answered with success {shown(answer.success)} and code {shown(code)}"
    return ""


def _wrong_data(asked: Request, answer: Response, action: str) -> str:
    params, said = (None if one is UNSET else one for one in (asked.params, answer.data))
    given = {"echo": params, "slow": "slept", "value": ACTIONS["value"]["return"]}[action]
    if said == given or (
        given is None and said == {}
    ):  # what an action makes of parameters that are not there
        return ""
    return f"{asked.action} was answered with {shown(said)}, not {shown(given)}"


def _wrong_meta(asked: Request, answer: Response) -> str:
    """The meta of an answer is that of its request, as these actions add nothing; ``$`` is the library's."""
    if not isinstance(asked.meta, Mapping):
        return ""
    has = answer.meta if isinstance(answer.meta, Mapping) else {}
    more, less = (
        {key: these[key] for key in these if key not in those and key[:1] != "$"}
        for these, those in ((has, asked.meta), (asked.meta, has))
    )
    what = "a stream" if answer.stream is True else "data"
    if more:
        return f"{asked.action} was answered with {what}, and meta {shown(more)}, which its request has not"
    if less:
        return f"{asked.action} was answered with {what}, without the meta {shown(less)} of its request"
    return ""


def _plain_actions(ops: Sequence[RunOp]) -> set[str]:
    """The actions that answer in any case, with what came or with what they were given."""
    return {
        f"{done.args['service']}.{name}"
        for done in ops
        if done.op == "mol.serve"
        for name, what in done.args["actions"].items()
        if what == "echo" or (isinstance(what, Mapping) and "return" in what)
    }


def changed_errors(ops: Sequence[RunOp], facts: Facts) -> Iterator[tuple[Position, str]]:
    """Answers of the client with an error that is not the one which its action has thrown."""
    actions = {
        f"{done.args['service']}.{name}": what["throw"]
        for done in ops
        if done.op == "mol.serve"
        for name, what in done.args["actions"].items()
        if isinstance(what, Mapping) and "throw" in what and not what["throw"].get("plain")
    }
    for one in facts.asked_back:
        action, answer = str(getattr(one.frame, "action", None)), one.answer
        thrown = actions.get(action)
        if thrown is None or not isinstance(answer, Response) or one.answered is None:
            continue
        if not isinstance(answer.error, Mapping):
            continue
        if code_of(answer) in (NOT_FOUND, TOO_LATE) and thrown.get("code") != code_of(answer):
            continue  # it was taken back, or came too late
        for name, value in thrown.items():
            if answer.error.get(name) != value:
                has, threw = shown(answer.error.get(name, UNSET)), shown(value)
                yield one.answered, f"{action} has thrown {name} {threw}, and its answer has {has}"


def broken_streams(ops: Sequence[RunOp], facts: Facts) -> Iterator[tuple[Position, str]]:
    """Streams of the client, in answer to a request, that do not end as their sources did."""
    sources = {
        f"{done.args['service']}.{name}": what
        for done in ops
        if done.op == "mol.serve"
        for name, what in done.args["actions"].items()
        if isinstance(what, Mapping) and "stream" in what
    }
    asked = {repr(one.frame.id): one.frame for one in facts.asked_back if isinstance(one.frame, Request)}
    pieces: dict[str, bytes] = {}
    for at, frame in [(one.at, one.frame) for one in facts.sent]:
        request = asked.get(repr(frame.id)) if isinstance(frame, Response) else None
        source = sources.get(str(request.action)) if request is not None else None
        if source is None or not isinstance(frame, Response) or is_first(frame):
            continue
        came, given = pieces.setdefault(repr(frame.id), b""), body_bytes(source["stream"])
        if frame.stream is True:
            pieces[repr(frame.id)] = came + bytes_of(frame.data)
        elif wrong := _wrong_end(frame, source.get("breaks"), came, given):
            yield at, f"the stream of {request.action} ends {wrong}"  # type: ignore[union-attr]


def _reading_actions(ops: Sequence[RunOp]) -> set[str]:
    """The actions that read what is uploaded, and answer with that."""
    return {
        f"{done.args['service']}.{name}"
        for done in ops
        if done.op == "mol.serve"
        for name, what in done.args["actions"].items()
        if isinstance(what, Mapping) and what.get("read_stream")
    }


def misread_streams(ops: Sequence[RunOp], facts: Facts) -> Iterator[tuple[Position, str]]:
    """Answers of actions that read what was uploaded to its end, and are not about what came."""
    for flow in facts.flows:
        asked = flow.question if flow.direction == "served" else None
        answer = asked.answer if asked is not None else None
        if asked is None or asked.answered is None or not isinstance(answer, Response):
            continue
        action = getattr(asked.frame, "action", None)
        if action not in _reading_actions(ops) or answer.success is not True:
            continue
        is_whole = flow.whole is not None and flow.whole <= asked.answered
        if not is_whole or (flow.error is not None and not flow.has_two_ends):
            why = "had not come whole" if flow.error is None else f"broke off with {shown(flow.error)}"
            yield asked.answered, f"{action} was answered with success, and what it was to read {why}"
        elif not flow.is_doubled and not _has_read(answer.data, flow.body):
            yield asked.answered, f"{action} has read {shown(answer.data)}, what came was {shown(flow.body)}"


def _has_read(data: Any, body: bytes) -> bool:
    """Whether an action reports this stream, or a part of it that nobody can compare."""
    stream = data.get("stream") if isinstance(data, Mapping) else None
    return not isinstance(stream, Mapping) or same_body(stream, body)


def _wrong_end(frame: Response, breaks: str | None, came: bytes, given: bytes) -> str:
    """What is wrong with the end of a stream of which this much has been sent; "" if nothing is."""
    if frame.success is not True:
        fails = breaks is not None and came == given
        is_it = breaks in words_in(frame.error) if fails else True  # type: ignore[operator]
        return "" if is_it else f"with {shown(frame.error)}, its source with {shown(breaks)}"
    if breaks is not None:
        return f"as if nothing were wrong, its source failed with {shown(breaks)}"
    return "" if came == given else f"after {len(came)} bytes of {len(given)}"


def refused_offers(ops: Sequence[RunOp], facts: Facts) -> Iterator[tuple[Position, str]]:
    """Requests that the client has answered with "not found", and it had announced what they ask for.

    Args:
        ops: What the application has taken back, it may be about to say so.
    """
    plain = _plain_actions(ops)
    ends = [done.begun for done in ops if done.op in ("mol.unserve", "close", "abort")]
    for one in facts.asked_back:
        action, answer = getattr(one.frame, "action", None), one.answer
        if not isinstance(action, str) or action not in plain or not isinstance(answer, Response):
            continue
        if code_of(answer) != NOT_FOUND:
            continue
        announced = [said for said in facts.announced if said.conn is one.conn and said.at < one.asked]
        if not announced or action not in announced[-1].what[0] or one.answered is None:
            continue
        if not any(announced[-1].at.t - CHANGE_S < end.t and end < one.answered for end in ends):
            yield one.answered, f"{action} was not found, and the client had announced it"
