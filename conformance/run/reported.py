"""What was reported to the application: events, and the outcome of each message that it published."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from conformance.clients.adapter.kit.bodies import body_parts
from conformance.clients.adapter.messages import Event
from conformance.clients.adapter.messages import body_bytes as body_of
from conformance.run.bases import RunOp
from conformance.run.facts import Written
from conformance.run.showing import BORDER, message
from conformance.run.trace import START, Position
from conformance.run.traits import Traits

PUBLISHING = ("publish", "publish_many")


class ReportedEvent:
    """An event of the client, with its position in the trace."""

    def __init__(self, event: Event) -> None:
        self.event = event
        self.what = event.event
        self.at: Position = START

    def __getitem__(self, name: str) -> Any:
        return self.event.fields.get(name)

    def __repr__(self) -> str:
        return f"{self.event.event} {self.event.fields} at {self.at.t:.3f}"


class ReportedOutcome(NamedTuple):
    """The outcome of one message.

    Attributes:
        word: ``acked``, ``nacked``, ``unknown``, or ``sent`` where nothing was reported.
        place: See `facts.Written`; None if it is not known: no key was returned, and nothing was written.
        at: When it was reported; None if it never was.
        body: What was to be published; None where an event does not say for which message it is.
    """

    done: RunOp
    word: str
    code: Any
    place: tuple[Hashable, ...] | None
    at: Position | None
    body: bytes | None

    @property
    def deadline_s(self) -> float:
        """By when the client had to know."""
        return self.done.begun.t + self.done.timeout_s

    @property
    def earliest_s(self) -> float:
        """Until when the client has to wait for it, where nothing is lost."""
        return self.done.begun.t + self.done.earliest_s

    def __str__(self) -> str:
        code = "" if self.code is None else f" with code {self.code}"
        return f"{message(self.body)} was reported as {self.word}{code}"


class _Places:
    """By what outcomes are reported (`facts.Written.place`), found by what the application knows."""

    def __init__(self, written: Sequence[Written], traits: Traits, own_keys: bool) -> None:
        self._traits = traits
        self._own_keys = own_keys
        self._all = {one.place for one in written}
        self._by_body: dict[tuple[Any, ...], set[tuple[Hashable, ...]]] = {}
        self._unnamed: dict[tuple[Hashable, ...], set[tuple[Hashable, ...]]] = {}  #: without the producer
        self._anywhere: dict[bytes, set[tuple[Hashable, ...]]] = {}  #: whatever the target
        for one in written:
            if one.body is not None:
                self._by_body.setdefault((*one.place[:-1], one.body), set()).add(one.place)
                self._anywhere.setdefault(one.body, set()).add(one.place)
            self._unnamed.setdefault((one.place[0], one.place[-1]), set()).add(one.place)

    def find(self, args: Mapping[str, Any], key: Any, body: bytes | None) -> tuple[Hashable, ...] | None:
        """The place of a message; None if it is not known."""
        if key is None or self._traits.delivery.spreads(args):
            return self._by(args, body)
        where = self._traits.settlement.place(args, key)
        if where in self._all or not self._own_keys:
            return where
        own = self._unnamed.get((where[0], where[-1]), set()) if where[1] == "" else set()
        return next(iter(own)) if len(own) == 1 else self._by(args, body)

    def _by(self, args: Mapping[str, Any], body: bytes | None) -> tuple[Hashable, ...] | None:
        if self._traits.delivery.spreads(args):
            found = self._anywhere.get(body or b"", set())
        else:
            found = self._by_body.get((*self._traits.settlement.place(args, 0)[:-1], body), set())
        return next(iter(found)) if body is not None and len(found) == 1 else None


def outcomes(
    ops: Sequence[RunOp],
    events: Sequence[ReportedEvent],
    written: Sequence[Written],
    traits: Traits,
    own_keys: bool = False,
) -> Iterator[ReportedOutcome]:
    """One row per message that was published with an outcome to be reported.

    Args:
        own_keys: What the client returns as a key need not be the one on the wire.
    """
    by_place = _bodies_by_place(written)
    by_op: dict[int, list[ReportedEvent]] = {}
    for heard in events:
        if heard.what == "outcome":
            by_op.setdefault(heard["id"], []).append(heard)
    place = _Places(written, traits, own_keys).find
    for done in ops:
        result = done.result
        if done.op not in PUBLISHING or result is None:
            continue
        bodies = bodies_of(done)
        if not result.ok:
            word = "nacked" if result.error is not None and result.error.definite else "unknown"
            for body in bodies:
                yield ReportedOutcome(done, word, result.code, place(done.args, None, body), done.ended, body)
        elif done.args.get("wait", True):
            rows = result.value["outcomes"] if done.op == "publish_many" else [result.value]
            for body, row in zip(bodies, rows, strict=False):
                key = row.get("key")
                yield ReportedOutcome(
                    done, row["outcome"], row.get("code"), place(done.args, key, body), done.ended, body
                )
        else:
            single = bodies[0] if done.op == "publish" else None  # then its event is about this message
            heard_of_it = by_op.get(done.id, ())
            if single is not None and not heard_of_it:
                where = place(done.args, None, single)
                yield ReportedOutcome(done, result.value["outcome"], None, where, None, single)
            for heard in heard_of_it:
                where = place(done.args, heard["key"], single)
                own = by_place.get(where, set()) & {*bodies, None}  # another message may have had the same id
                only = own.pop() if len(own) == 1 else None
                yield ReportedOutcome(done, heard["outcome"], heard["code"], where, heard.at, only)


def _bodies_by_place(written: Sequence[Written]) -> dict[tuple[Hashable, ...] | None, set[bytes | None]]:
    found: dict[tuple[Hashable, ...] | None, set[bytes | None]] = {}
    for one in written:
        found.setdefault(one.place, set()).add(one.body)
    return found


def is_body(reported: Any, body: bytes) -> bool:
    """Whether a body as it was reported is this one; of a large one its size and a sum are reported."""
    if "sha256" in reported:
        return bool(reported["len"] == len(body) and reported["sha256"] == sha256(body).hexdigest())
    return body_of(reported) == body


def joined(parts: Sequence[bytes]) -> bytes:
    """The parts of a body as one: a body of one part as it is."""
    return BORDER.join(parts)


def bodies_of(done: RunOp) -> list[bytes]:
    """What a publish was to publish."""
    return bodies_in(done.op, done.args)


def keys_of(done: RunOp) -> list[Any]:
    """The ids that the application gave them; None for each that the library gives."""
    messages = [done.args] if done.op == "publish" else done.args["messages"]
    return [message.get("key") for message in messages]


def bodies_in(op: str, args: Mapping[str, Any]) -> list[bytes]:
    """What a publish with these arguments is to publish."""
    if op == "publish":
        return [joined(body_parts(args["body"]))]
    return [body_of(message["body"]) for message in args["messages"]]
