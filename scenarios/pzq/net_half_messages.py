"""NET-1.05 and 1.06 for PZQ: ZeroMQ takes a message as a whole or not at all.

libzmq connects again by itself; for libraries that do not, and say so, the script does.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import PZQ as Fake
from fakebrokers.faults import fault
from fakebrokers.faults.effects import Fin, Rst, Truncate
from fakebrokers.faults.effects.end import EndOfConnection
from scenarios.pzq._steps import QUICK, begun, connected_again, parts_are, with_body
from scenarios.pzq.subject import PzqSubject
from scenarios.subjects import ROLES

PATIENCE_S = 2.0
BACK_S = 30.0
HALF_GREETING = 32
#: Delivered in three parts, so that half of the message ends after a whole part of the body.
BODY = (b"a whole part", b"the part that is cut" * 20, b"what never left")


class Cut:
    """The connection ends after a message's front part.

    Args:
        end: How.
    """

    def __init__(self, subject: PzqSubject, end: EndOfConnection) -> None:
        self._subject = subject
        self._expect = subject.expect
        self._client = subject.client
        self._end = end
        self._name = ""
        self._mark = 0

    def _arm(self, name: str, cut: Truncate, **match: Any) -> None:
        """From now on the next message of the broker that fits is cut."""
        self._name, self._mark = name, self._subject.wire.journal.last_seq
        broken = fault(cut, self._end, direction="out", nth=1, scope="run", name=name, **match)
        self._subject.faults.add(broken)

    def _arm_greeting(self, name: str) -> None:
        self._arm(name, Truncate(keep=HALF_GREETING, of="stream"), byte=HALF_GREETING)

    async def _struck(self) -> None:
        """Wait until the cut has happened; after a FIN the client has to close its side."""
        fired = await self._subject.until(lambda: self._subject.faults.fired(self._name), PATIENCE_S)
        self._expect.exercised(
            fired, f"{self._name}: nothing was to leave", id=slug("{}-nothing-was-to-leave", self._name)
        )
        for record in self._subject.wire.journal.select(kind="fin", since=self._mark):
            criterion = f"{self._name}: the client closes its side"
            wire, connection = self._subject.wire, record.connection
            await self._expect.socket_closed(
                wire,
                connection,
                criterion,
                within_s=1.45,
                id=slug("{}-the-client-closes-its-side", self._name),
            )

    async def _clean(self, session: str) -> None:
        ended = await self._client.close(session)
        self._expect.ended(
            ended,
            f"{self._name}: close ends by its deadline",
            id=slug("{}-close-ends-by-its-deadline", self._name),
        )
        await self._subject.run(f"{session}-clean", case=f"{self._name}, clean connections afterwards")

    async def greeting(self) -> None:
        """Of the producer's connection, then of the consumer's."""
        subject, session = self._subject, "greeting"
        self._arm_greeting("greeting to a producer")
        waits = begun(self._client, self._expect, await self._client.connect(session))
        if waits:
            body = b"before the greeting"
            call = self._client.begin_publish(subject.queue, body, session=session, timeout=PATIENCE_S)
            await self._struck()
            self._expect.ended(
                await call,
                f"{self._name}: publish ends by its deadline",
                id=slug("{}-publish-ends-by-its-deadline", self._name),
            )
        else:
            await self._struck()
        if not (waits and self._client.reconnects("producer")):
            await connected_again(self._client, self._expect, session)
        await subject.works_again(
            f"{self._name}: the next connection works",
            within_s=BACK_S,
            session=session,
            id=slug("{}-the-next-connection-works", self._name),
        )
        self._arm_greeting("greeting to a consumer")
        waits = begun(self._client, self._expect, await subject.subscribe(subject.queue, session, session))
        await self._struck()
        if not (waits and self._client.reconnects("consumer")):
            await self._subscribed_again(session)
        subject.put(subject.queue, [b"after the greeting"])
        came = await self._delivered(b"after the greeting", session, BACK_S)
        self._expect.that(
            came,
            f"{self._name}: the next connection works",
            "the message did not come",
            id=slug("{}-the-next-connection-works", self._name),
        )
        await self._clean(session)

    async def ack(self) -> None:
        """The last byte of an acknowledgement is missing: there is hardly more in it than its parts."""
        subject, session = self._subject, "ack"
        await self._client.connected(session)
        first = await self._client.publish(subject.queue, b"to connect", session=session)
        self._expect.prepared(first)
        self._arm("ack", Truncate(keep=-1), connection=subject.connections("receive")[-1])
        body = b"half acknowledged"
        call = self._client.begin_publish(subject.queue, body, session=session, timeout=PATIENCE_S)
        await self._struck()
        result = await call
        self._expect.ended(result, "ack: publish ends by its deadline", id="ack-publish-ends-by-its-deadline")
        came = subject.holds(body)
        self._expect.that(
            not result.ok or came > 1,
            "ack: acked only by a whole one, of a message that was sent again",
            str(result),
            id="ack-acked-only-by-a-whole-one-of-a-message-that-was-sent",
        )
        await self._clean(session)

    async def delivery(self) -> None:
        """Half of a delivery; the broker sends it again when its ack timeout is over."""
        subject, session = self._subject, "delivery"
        fake = cast(Fake, subject.broker)
        await self._client.connected(session)
        self._expect.prepared(await subject.subscribe(subject.queue, session, session))
        fake.publish(b"to connect")
        self._expect.exercised(
            await self._delivered(b"to connect", session, PATIENCE_S),
            "no delivery came",
            id="no-delivery-came",
        )
        seen = len(self._client.messages(session))
        self._arm("delivery", Truncate(share=0.5), connection=subject.connections("send")[-1])
        before = fake.journal.last_seq
        fake.publish(*BODY)
        await self._struck()
        await asyncio.sleep(0.3)
        early = self._client.messages(session)[seen:]
        is_again = len(fake.journal.select(kind="Delivery", since=before)) > 1  # on a machine with much to do
        self._expect.that(
            is_again or not early,
            "delivery: nothing of half a message is handed to the application",
            early,
            id="delivery-nothing-of-half-a-message-is-surfaced",
        )
        if not self._client.reconnects("consumer"):
            await self._subscribed_again(session)
        await subject.until(lambda: len(self._client.messages(session)) > seen, PATIENCE_S)
        await asyncio.sleep(0.2)
        late = self._client.messages(session)[seen:]
        once = len(late) == 1 and parts_are(late[0], BODY)
        self._expect.that(
            once,
            "delivery: sent again as a whole, it is handed to the application once",
            late,
            id="delivery-sent-again-as-a-whole-it-is-surfaced-once",
        )
        await self._clean(session)

    async def _subscribed_again(self, session: str) -> None:
        await connected_again(self._client, self._expect, session)
        self._expect.prepared(await self._subject.subscribe(self._subject.queue, session, session))

    async def _delivered(self, body: bytes, sub: str, within_s: float) -> bool:
        """Whether the application gets a message."""
        return await self._subject.until(lambda: with_body(self._client, body, sub=sub), within_s)


async def _each_phase(subject: PzqSubject, client: Client, expect: Expect, end: EndOfConnection) -> None:
    cut = Cut(subject, end)
    await cut.greeting()
    await cut.ack()
    await cut.delivery()


@scenario("NET-1.05", protocol="pzq", roles=ROLES, server=QUICK, timeout_s=90, revision=2)
async def rst_in_mid_message(subject: PzqSubject, client: Client, expect: Expect) -> None:
    await _each_phase(subject, client, expect, Rst())


@scenario("NET-1.06", protocol="pzq", roles=ROLES, server=QUICK, timeout_s=90, revision=2)
async def fin_in_mid_message(subject: PzqSubject, client: Client, expect: Expect) -> None:
    await _each_phase(subject, client, expect, Fin())
