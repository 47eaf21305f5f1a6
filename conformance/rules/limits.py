"""What fits the limits of a server is sent, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.rules.registry import Violation, invariant
from conformance.run.case import Case
from conformance.run.reported import PUBLISHING, bodies_of
from conformance.run.showing import message


@invariant("limit-exact")
def limit_exact(case: Case) -> Iterator[Violation]:
    """What fits the agreed limits is sent; what does not is refused before it is sent.

    Why:
        One message that is too large ends the connection, and with it everything that was in flight.

    Rests on:
        RabbitMQ Stream: a frame above the agreed frame max ends the connection with code 14
            (docs/protocols/rabbitmq-stream.md, 5).
        Moleculer: a NATS server ends the connection after a message above its max_payload
            (docs/protocols/moleculer.md, 6.1).

    Example:
        publish ended ok, and the message does not fit the limit.

    Judges:
        rabbitmq-stream, moleculer
    """
    if case.hits:
        return
    for number, fits in case.notes.fits:
        done = case.ops[number]
        if done.result is not None and done.result.ok is not fits:
            how = "fits" if fits else "does not fit"
            yield f"{done.op} ended {done.result}, and the message {how} the limit", done.begun


@invariant("limit-exact")
def nothing_beyond_the_limit_is_written(case: Case) -> Iterator[Violation]:
    """A message above a limit that the server has named is not written, however the op ends: a client whose
    connection ends because of it reports a time-out or a loss, and both look like a refusal."""
    for one in case.facts.oversized:
        if case.before(one.named, one.at):
            text = (
                f"{one.conn.name}: {one.what} of {one.size} bytes was written, the server takes {one.limit}"
            )
            yield text, one.named, one.at
    if case.hits:
        return
    for number, fits in case.notes.fits:
        done = case.ops[number]
        bodies = [] if fits or done.op not in PUBLISHING else bodies_of(done)
        for written in case.facts.written:
            if written.at > done.begun and written.body in bodies:
                text = f"{message(written.body)} was written, and it does not fit the limit"
                yield text, done.begun, written.at
