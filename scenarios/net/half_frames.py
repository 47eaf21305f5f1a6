"""NET-1.05 and 1.06: an incomplete message was never sent."""

from __future__ import annotations

import asyncio

from conformance.adapter.messages import same_body
from conformance.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from fakebrokers.faults import fault
from fakebrokers.faults.effects import Fin, Rst, Truncate
from fakebrokers.faults.effects.end import EndOfConnection
from fakebrokers.journal import Tap
from fakebrokers.server import FakeServer
from scenarios.net._scripts import Script, script_for
from scenarios.net._scripts.narconi import NARC, SETTINGS
from scenarios.net._scripts.rabbitmq_stream import ROLES

RMQS = ("rabbitmq-stream",)
NARC_ROLES = (*ROLES, "http")
PATIENCE_S = 3.0


class HalfFrame:
    """One phase: half of its frame leaves, then the connection ends."""

    def __init__(self, script: Script, phase: str, end: EndOfConnection) -> None:
        self.script = script
        self.phase = phase
        self.kind = script.phases[phase]
        self.end = end
        self.session = phase.replace(" ", "-")
        self.queue = f"{script.queue}-{self.session}"
        self.mark = 0

    def arm(self) -> None:
        """From now on the next frame of that kind is cut."""
        self.mark = self.script.broker.journal.last_seq
        half = fault(Truncate(share=0.5), self.end, kind=self.kind, nth=1, scope="run", name=self.phase)
        self.script.broker.faults.add(half)

    async def play(self) -> None:
        """Everything up to the frame, and what has to come of it."""
        script = self.script
        script.add_queue(self.queue)
        if self.phase == "handshake answer":
            self.arm()
            await self._connect()
        else:
            await script.client.connected(self.session)
            steps = {
                "open answer": self._publish,
                "101": self._publish,
                "confirm": self._publish,
                "delivery": self._consume,
                "HTTP body": self._take,
                "close answer": self._close,
            }
            await steps[self.phase]()
        await self._both_sides_ended()
        script.broker.faults.remove(self.phase)
        clean = f"{self.session}-clean"
        await script.run(clean, case=f"{self.phase}, clean connection afterwards")

    async def _ended(self, result: Result) -> None:
        self.script.expect.ended(result, f"{self.phase}: {result.op} ends by its deadline")

    def _struck(self) -> str:
        """The connection on which half a frame left."""
        fired = self.script.broker.faults.fired(self.phase)
        self.script.expect.exercised(fired, f"{self.phase}: no {self.kind} was to leave")
        found = self.script.broker.journal.select(since=self.mark)
        return next(record.connection for record in found if self.phase in record.fault)

    async def _connect(self) -> None:
        result = await self.script.client.begin_connect(self.session, timeout=PATIENCE_S)
        await self._ended(result)
        accepted = [r.connection for r in self.script.broker.journal.select(kind="accepted", since=self.mark)]
        self.script.expect.exercised(self._struck() in accepted, "an older connection was struck")
        self.script.expect.that(
            len(accepted) > 1 or not result.ok,
            f"{self.phase}: half an answer opens no connection",
            str(result),
        )

    async def _publish(self) -> None:
        script = self.script
        if self.phase == "confirm":
            first = await script.client.publish(self.queue, b"to open the publisher", session=self.session)
            script.expect.prepared(first)
        self.arm()
        body = f"the message of {self.phase}".encode()
        timed = script.client.can("ack_timeout")
        patience = PATIENCE_S if self.phase == "confirm" else script.client.deadline_s("request", PATIENCE_S)
        result = await script.client.begin_publish(self.queue, body, session=self.session, timeout=patience)
        self._struck()
        if timed or self.phase != "confirm":
            await self._ended(result)
        if result.ok:
            whole = self._whole()
            script.expect.that(
                whole and script.holds(body, self.queue),
                f"{self.phase}: acked only by a whole confirm of a message that the broker has",
                f"{result}; {len(whole)} whole {self.kind} frames",
            )

    async def _consume(self) -> None:
        script = self.script
        bodies = script.bodies(10, self.session)
        script.put(self.queue, bodies)
        self.arm()
        await self._ended(await script.subscribe(self.queue, self.session, self.session, PATIENCE_S))
        got = await script.client.wait_messages(1, self.session, 1.0)
        self._struck()
        if not self._whole():
            script.expect.equal(len(got), 0, f"{self.phase}: nothing of half a delivery is surfaced")
            return
        await script.client.wait_messages(len(bodies), self.session)
        await asyncio.sleep(0.2)
        seen = [message.body for message in script.client.messages(self.session)]
        once = len(seen) == len(bodies) and all(map(same_body, seen, bodies))
        script.expect.that(once, f"{self.phase}: sent again as a whole, each is surfaced once", seen)

    async def _take(self) -> None:
        self.script.put(self.queue, [bytes(2000)])  # half of the frame is in the body
        self.arm()
        taken = await self.script.client.op("narc.take", PATIENCE_S, session=self.session, target=self.queue)
        await self._ended(taken)
        self._struck()
        surfaced = taken.ok and taken.value["message"] is not None
        self.script.expect.that(not surfaced, f"{self.phase}: nothing of half a body is surfaced", str(taken))

    async def _close(self) -> None:
        if self.script.client.has_role("publisher"):
            first = await self.script.client.publish(self.queue, b"first", session=self.session)
            self.script.expect.prepared(first)
        self.arm()
        await self._ended(await self.script.client.close(self.session, timeout=PATIENCE_S))
        came = await self.script.until(lambda: self.script.broker.faults.fired(self.phase), 1.0)
        if not came and self._left_without_the_answer():
            self.script.expect.note(f"{self.phase} left out: the client does not wait for it")
            return
        self._struck()

    def _left_without_the_answer(self) -> bool:
        """Whether the client has said that it closes, and has let go of the connection there and then."""
        broker, close_frame = self.script.broker, self.script.close_frame
        said = broker.journal.select(kind=close_frame, tap=Tap.RECEIVED, since=self.mark)
        return bool(said) and not any(broker.client_holds(record.connection) for record in said)

    def _whole(self) -> list[object]:
        """Frames of that kind that left whole since the fault was armed."""
        found = self.script.broker.journal.select(kind=self.kind, tap=Tap.SENT, since=self.mark)
        return [record for record in found if self.phase not in record.fault]

    async def _both_sides_ended(self) -> None:
        if not isinstance(self.end, Fin):
            return
        for record in self.script.broker.journal.select(kind="fin", since=self.mark):
            await self.script.expect.socket_closed(
                self.script.broker,
                record.connection,
                f"{self.phase}: the client closes its side",
                within_s=1.45,
            )


async def _each_phase(script: Script, end: EndOfConnection) -> None:
    for phase in script.phases:  # the handshake first: some clients reconnect even after a close
        await HalfFrame(script, phase, end).play()


@scenario("NET-1.05", protocols=NARC, roles=NARC_ROLES, server=SETTINGS, timeout_s=90)
@scenario("NET-1.05", protocols=RMQS, roles=ROLES, timeout_s=90)
async def rst_in_mid_frame(broker: FakeServer, client: Client, expect: Expect) -> None:
    await _each_phase(script_for(broker, client, expect), Rst())


@scenario("NET-1.06", protocols=NARC, roles=NARC_ROLES, server=SETTINGS, timeout_s=90)
@scenario("NET-1.06", protocols=RMQS, roles=ROLES, timeout_s=90)
async def fin_in_mid_frame(broker: FakeServer, client: Client, expect: Expect) -> None:
    await _each_phase(script_for(broker, client, expect), Fin())
