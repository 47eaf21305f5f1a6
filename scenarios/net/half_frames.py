"""NET-1.05 and 1.06: an incomplete message was never sent."""

from __future__ import annotations

import asyncio

from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.faults import fault
from fakebrokers.faults.effects import Fin, Rst, Truncate
from fakebrokers.faults.effects.end import EndOfConnection
from fakebrokers.journal import Tap
from scenarios.subjects import ROLES, Subject

NARC_ROLES = (*ROLES, "http")
PATIENCE_S = 3.0


class HalfFrame:
    """One phase: half of its frame leaves, then the connection ends."""

    def __init__(self, subject: Subject, phase: str, end: EndOfConnection) -> None:
        self.subject = subject
        self.phase = phase
        self.step, self.kind = subject.phases[phase]
        self.end = end
        self.session = phase.replace(" ", "-")
        self.queue = f"{subject.queue}-{self.session}"
        self.mark = 0

    def arm(self) -> None:
        """From now on the next frame of that kind is cut."""
        self.mark = self.subject.broker.journal.last_seq
        half = fault(Truncate(share=0.5), self.end, kind=self.kind, nth=1, scope="run", name=self.phase)
        self.subject.broker.faults.add(half)

    async def play(self) -> None:
        """Everything up to the frame, and what has to come of it."""
        subject = self.subject
        subject.add_queue(self.queue)
        if self.step == "connect":
            self.arm()
            await self._connect()
        else:
            await subject.connected(self.session, self.queue)
            steps = {
                "open": self._publish,
                "publish": self._publish,
                "consume": self._consume,
                "other": self._other,
                "close": self._close,
            }
            await steps[self.step]()
        await self._both_sides_ended()
        subject.broker.faults.remove(self.phase)
        clean = f"{self.session}-clean"
        await subject.run(clean, case=f"{self.phase}, clean connection afterwards")

    async def _ended(self, result: Result) -> None:
        self.subject.expect.ended(
            result,
            f"{self.phase}: {result.op} ends by its deadline",
            id=slug("{}-{}-ends-by-its-deadline", self.phase, result.op),
        )

    def _struck(self) -> str:
        """The connection on which half a frame left."""
        fired = self.subject.broker.faults.fired(self.phase)
        self.subject.expect.exercised(
            fired,
            f"{self.phase}: no {self.kind} was to leave",
            id=slug("{}-no-{}-was-to-leave", self.phase, self.kind),
        )
        found = self.subject.broker.journal.select(since=self.mark)
        return next(record.connection for record in found if self.phase in record.fault)

    async def _connect(self) -> None:
        result = await self.subject.begin_connect(self.session, timeout=PATIENCE_S)
        await self._ended(result)
        accepted = [
            r.connection for r in self.subject.broker.journal.select(kind="accepted", since=self.mark)
        ]
        self.subject.expect.exercised(
            self._struck() in accepted, "an older connection was struck", id="an-older-connection-was-struck"
        )
        self.subject.expect.that(
            len(accepted) > 1 or not result.ok,
            f"{self.phase}: half an answer opens no connection",
            str(result),
            id=slug("{}-half-an-answer-opens-no-connection", self.phase),
        )

    async def _publish(self) -> None:
        subject = self.subject
        if self.step == "publish":
            first = await subject.publish(self.queue, b"to open the publisher", session=self.session)
            subject.expect.prepared(first)
        self.arm()
        body = f"the message of {self.phase}".encode()
        timed = subject.publishes_in_time
        patience = PATIENCE_S if self.step == "publish" else subject.client.deadline_s("request", PATIENCE_S)
        result = await subject.begin_publish(self.queue, body, session=self.session, timeout=patience)
        self._struck()
        if timed or self.step != "publish":
            await self._ended(result)
        if result.ok:
            whole = self._whole()
            subject.expect.that(
                whole and subject.holds(body, self.queue),
                f"{self.phase}: acked only by a whole confirm of a message that the broker has",
                f"{result}; {len(whole)} whole {self.kind} frames",
                id=slug("{}-acked-only-by-a-whole-confirm-of-a-message-that-the-broker-has", self.phase),
            )

    async def _consume(self) -> None:
        subject = self.subject
        bodies = subject.bodies(10, self.session)
        subject.put(self.queue, bodies)
        self.arm()
        await self._ended(await subject.subscribe(self.queue, self.session, self.session, PATIENCE_S))
        got = await subject.wait_messages(1, self.session, 1.0)
        self._struck()
        if not self._whole():
            subject.expect.equal(
                len(got),
                0,
                f"{self.phase}: nothing of half a delivery is handed to the application",
                id=slug("{}-nothing-of-half-a-delivery-is-surfaced", self.phase),
            )
            return
        await subject.wait_messages(len(bodies), self.session)
        await asyncio.sleep(0.2)
        seen = subject.messages(self.session)
        subject.expect.that(
            subject.are(seen, bodies),
            f"{self.phase}: sent again as a whole, each is delivered once",
            seen,
            id=slug("{}-sent-again-as-a-whole-each-is-surfaced-once", self.phase),
        )

    async def _other(self) -> None:
        self.arm()
        taken = await self.subject.play_phase(self.phase, self.queue, self.session, PATIENCE_S)
        await self._ended(taken)
        self._struck()
        delivered = taken.ok and taken.value["message"] is not None
        criterion = f"{self.phase}: nothing of half a body is delivered"
        self.subject.expect.that(
            not delivered, criterion, str(taken), id=slug("{}-nothing-of-half-a-body-is-surfaced", self.phase)
        )

    async def _close(self) -> None:
        if self.subject.publishes:
            first = await self.subject.publish(self.queue, b"first", session=self.session)
            self.subject.expect.prepared(first)
        self.arm()
        await self._ended(await self.subject.client.close(self.session, timeout=PATIENCE_S))
        came = await self.subject.until(lambda: self.subject.broker.faults.fired(self.phase), 1.0)
        if not came and self._left_without_the_answer():
            self.subject.expect.note(f"{self.phase} left out: the client does not wait for it")
            return
        self._struck()

    def _left_without_the_answer(self) -> bool:
        """Whether the client has said that it closes, and has let go of the connection there and then."""
        broker, close_frame = self.subject.broker, self.subject.close_frame
        said = broker.journal.select(kind=close_frame, tap=Tap.RECEIVED, since=self.mark)
        return bool(said) and not any(broker.client_holds(record.connection) for record in said)

    def _whole(self) -> list[object]:
        """Frames of that kind that left whole since the fault was armed."""
        found = self.subject.broker.journal.select(kind=self.kind, tap=Tap.SENT, since=self.mark)
        return [record for record in found if self.phase not in record.fault]

    async def _both_sides_ended(self) -> None:
        if not isinstance(self.end, Fin):
            return
        for record in self.subject.broker.journal.select(kind="fin", since=self.mark):
            await self.subject.expect.socket_closed(
                self.subject.broker,
                record.connection,
                f"{self.phase}: the client closes its side",
                within_s=1.45,
                id=slug("{}-the-client-closes-its-side", self.phase),
            )


async def _each_phase(subject: Subject, end: EndOfConnection) -> None:
    await subject.rehearse()
    for phase in subject.phases:  # the handshake first: some clients reconnect even after a close
        await HalfFrame(subject, phase, end).play()


@scenario("NET-1.05", "MUST", "critical", basis=["X2"], roles=ROLES, timeout_s=90)
async def rst_in_mid_frame(subject: Subject, client: Client, expect: Expect) -> None:
    """RST in mid-frame, each phase.

    Fault: Half of the frame of a phase, then rst; one run for each of the phases of the protocol; the
    listener stays open and later connections are clean
    Pass: Nothing of that message is delivered, acknowledged or counted as `acked` (a resend that is confirmed
    after a reconnect is `acked`); each pending op ends by its deadline; process alive. Where a client retries
    the handshake by itself, the next connection must work
    Seen: stream-dotnet-client#433; jeromq#335
    """
    await _each_phase(subject, Rst())


@scenario("NET-1.06", "MUST", "high", basis=["X2"], roles=ROLES, timeout_s=90)
async def fin_in_mid_frame(subject: Subject, client: Client, expect: Expect) -> None:
    """FIN in mid-frame.

    Fault: Half of the frame, then fin; one run for each phase, as in NET-1.05; the listener stays open and
    later connections are clean
    Pass: Nothing of that message is delivered, acknowledged or counted as `acked`; each pending op ends by
    its deadline and the client closes its side within 1 s; process alive; clients that retry by themselves as
    in NET-1.05
    """
    await _each_phase(subject, Fin())
