"""Steps that the scenarios of NATS share."""

from __future__ import annotations

from typing import Any

from conformance.suite import Client, Expect
from conformance.suite.client import Body, as_body
from fakebrokers import NATS
from fakebrokers.journal import Tap
from scenarios._common import until

PUBLISHER = ("publisher",)
CONSUMER = ("consumer",)
REQUESTER = ("requester",)
BACK_S = 30.0


def bodies_at(broker: NATS, subject: str) -> list[bytes]:
    """What clients have published there, as the server got it."""
    found = broker.journal.select(role="publish", tap=Tap.HEARD)
    frames: list[Any] = [record.frame for record in found]
    return [frame.payload for frame in frames if frame.subject == subject]


def bodies_before_ping(broker: NATS, subject: str, since: int) -> list[bytes]:
    """The same, up to the last PING that came; what came before `since` counts in any case."""
    pings = broker.journal.select(kind="Ping", tap=Tap.HEARD, since=since)
    last = pings[-1].seq if pings else since
    found = broker.journal.select(role="publish", tap=Tap.HEARD)
    frames: list[Any] = [record.frame for record in found if record.seq < last]
    return [frame.payload for frame in frames if frame.subject == subject]


async def request(client: Client, subject: str, body: Body, timeout: float = 5.0) -> Any:
    """Ask, and wait for the answer."""
    return await client.op("nats.request", timeout, session="s1", target=subject, body=as_body(body))


async def listens_again(broker: NATS, expect: Expect, subject: str, queue: str = "") -> None:
    """Demand that the subscription is there again after a loss."""
    back = await until(lambda: (subject, queue) in broker.subscriptions, BACK_S)
    expect.that(
        back,
        "the subscription is made again, as it was",
        broker.subscriptions,
        id="subscribed-again-as-it-was",
    )


async def lost(broker: NATS, expect: Expect) -> None:
    """End all connections, and wait until the server has forgotten them."""
    broker.kill(how="rst")
    gone = await until(lambda: not any(subject for subject, _ in broker.subscriptions), 5.0)
    expect.exercised(gone, "the connection was not ended", id="not-ended")
