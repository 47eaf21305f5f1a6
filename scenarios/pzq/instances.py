"""PZQ-2 Consumer: several instances at once, which the first part of a delivery tells apart."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from conformance.clients.adapter.messages import Message
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import PZQ
from fakebrokers.faults import latency
from scenarios._common import limit_s, second_fake, until
from scenarios.pzq._steps import (
    CONSUMER,
    acknowledged,
    acks,
    auto,
    delivered,
    deliveries,
    settle,
    statuses,
    with_body,
)

NAMES = ("first", "second", "third")
SLOW_S = 3.0
MANY = 10


@contextmanager
def instances(broker: PZQ, count: int) -> Iterator[list[PZQ]]:
    """The broker and others beside it; in the profile that has names for instances, each has its own."""
    with ExitStack() as stack:
        others = [stack.enter_context(second_fake(broker, profile=broker.profile)) for _ in range(count - 1)]
        for number, other in enumerate(others, 2):
            if broker.profile == "seed":
                other.change_identity(b"pzq-%d" % number)
        yield [broker, *others]


async def consuming_from(client: Client, expect: Expect, brokers: Sequence[PZQ], **options: Any) -> None:
    """Prepare: one consumer, connected to all of them."""
    await client.connected(endpoints={**brokers[0].where, "send": [each.send_url for each in brokers]})
    expect.prepared(await client.subscribe("", **options))


async def came_from(client: Client, expect: Expect, body: bytes, instance: int, count: int = 1) -> Message:
    """A message of an instance is delivered; the newest of so many copies."""
    name = NAMES[instance]
    criterion = f"a message of the {name} instance is delivered"
    copies = await delivered(
        client,
        expect,
        body,
        count=count,
        criterion=criterion,
        id=slug("a-message-of-the-{}-instance-is-surfaced", name),
    )
    return copies[count - 1]


async def acknowledged_there(
    broker: PZQ, expect: Expect, key: bytes, instance: int, within_s: float = 3.0
) -> None:
    """The instance that delivered a message gets its acknowledgement."""
    await acknowledged(
        broker,
        expect,
        key,
        f"1 comes to the {NAMES[instance]} instance, for what it has delivered",
        within_s,
        id=slug("n-comes-to-the-{}-instance-for-what-it-has-delivered", NAMES[instance]),
    )


def nothing_strayed(expect: Expect, brokers: Sequence[PZQ], keys: Sequence[Sequence[bytes]]) -> None:
    """No instance got an acknowledgement for what another one has delivered."""
    for broker, own in zip(brokers, keys, strict=True):
        strange = [ack for ack in acks(broker) if ack.key not in own]
        expect.that(
            not strange,
            "no acknowledgement comes to another instance",
            strange[:3],
            id="no-acknowledgement-comes-to-another-instance",
        )


@scenario("PZQ-2.25", "MUST", "critical", basis=["P8", "P10"], needs=["endpoints"], roles=CONSUMER)
@scenario("PZQ-2.25", variants=("seed",), roles=CONSUMER, server={"profile": "seed"})
async def acks_go_back(broker: PZQ, client: Client, expect: Expect) -> None:
    """An ACK goes to the instance that delivered.

    Fault: None; one consumer at two instances, three messages stored at each. The runner settles them in the
    order of their arrival, backwards; it rejects the first one that it settles of each instance
    Pass: All six delivered; each [key]["1"] and [key]["0"] comes to the instance that delivered the key, and
    to no other; the rejected ones come again and are acknowledged; both stores empty. `pzq_id`, where shown,
    is the same for messages of one instance and differs between the two
    Profile: both, run in each: in `real` the consumer's own socket makes up part 0, in `seed` it is the
    instance's identity
    """
    with instances(broker, 2) as brokers:
        bodies = [[b"%d-%d" % (number, n) for n in range(3)] for number in range(2)]
        keys = [[each.publish(body) for body in own] for each, own in zip(brokers, bodies, strict=True)]
        await consuming_from(client, expect, brokers)
        for number, own in enumerate(bodies):
            for body in own:
                await came_from(client, expect, body, number)
        _judge_names(client, expect, bodies)
        rejected: set[int] = set()
        for message in reversed(client.messages("c1")[:6]):
            number, n = _place(client, message, bodies)
            how = "ack" if number in rejected else "nack"
            rejected.add(number)
            expect.ended(await settle(client, message, how), "settling ends", id="settling-ends")
            if how == "nack":
                await _comes_back(brokers[number], client, expect, bodies[number][n], number)
        for number, own_keys in enumerate(keys):
            for key in own_keys:
                await acknowledged_there(brokers[number], expect, key, number)
        nothing_strayed(expect, brokers, keys)
        await until(lambda: not any(each.messages() for each in brokers), 1.0)
        left = [len(each.messages()) for each in brokers]
        expect.equal(left, [0, 0], "both stores are empty", id="both-stores-are-empty")


def _place(client: Client, message: Message, bodies: Sequence[Sequence[bytes]]) -> tuple[int, int]:
    """Which message of which instance it is."""
    for number, own in enumerate(bodies):
        for n, body in enumerate(own):
            if message.ref in [copy.ref for copy in with_body(client, body)]:
                return number, n
    raise LookupError(f"no producer has stored {message.body!r:.80}")


async def _comes_back(broker: PZQ, client: Client, expect: Expect, body: bytes, instance: int) -> None:
    again = await came_from(client, expect, body, instance, count=2)
    expect.ended(await settle(client, again), "settling ends", id="settling-ends")


def _judge_names(client: Client, expect: Expect, bodies: Sequence[Sequence[bytes]]) -> None:
    """Where part 0 is shown, it names the instances."""
    shown = [{with_body(client, body)[0].meta.get("pzq_id") for body in own} for own in bodies]
    if any(None in names for names in shown):
        return
    expect.that(
        all(len(names) == 1 for names in shown) and not shown[0] & shown[1],
        "`pzq_id` is the same for messages of one instance, and differs between two",
        shown,
        id="pzq-id-names-the-instance",
    )


@scenario(
    "PZQ-2.26",
    "MUST",
    "high",
    basis=["P8", "P9", "P10"],
    needs=["endpoints"],
    roles=CONSUMER,
    timeout_s=40,
    revision=2,
)
async def one_of_three_restarts(broker: PZQ, client: Client, expect: Expect) -> None:
    """One of three instances restarts.

    Fault: One message of each instance is delivered. The second one's connections are cut; meanwhile the
    runner settles the messages of the other two, which get another one each; 0.5 s later it is back
    Pass: Both "1" and both new messages come while the second instance is away; when it is back its
    unacknowledged message is delivered again and acknowledged there, and so is a new one; no acknowledgement
    comes to another instance; no second subscription is needed (a client without `auto_reconnect` is
    connected anew by the script)
    """
    with instances(broker, 3) as brokers:
        keys = [[each.publish(b"%d" % n)] for n, each in enumerate(brokers)]
        await consuming_from(client, expect, brokers)
        found = [await came_from(client, expect, b"%d" % n, n) for n in range(3)]
        gone = brokers[1]
        gone.crash()
        for n in (0, 2):
            expect.ended(await settle(client, found[n]), "settling ends", id="settling-ends")
            keys[n].append(brokers[n].publish(b"%d, meanwhile" % n))
            later = await came_from(client, expect, b"%d, meanwhile" % n, n)
            expect.ended(await settle(client, later), "settling ends", id="settling-ends")
        for n in (0, 2):
            for key in keys[n]:
                await acknowledged_there(brokers[n], expect, key, n)
        await asyncio.sleep(0.5)
        gone.restart()
        if not client.reconnects("consumer"):
            expect.ended(await client.close(), "close ends by its deadline", id="close-ends-by-its-deadline")
            await consuming_from(client, expect, brokers)
        criterion = "the message of the instance that is back is delivered again"
        copies = await delivered(
            client,
            expect,
            b"1",
            count=2,
            criterion=criterion,
            id="the-message-of-the-instance-that-is-back-is-surfaced-again",
        )
        expect.ended(await settle(client, copies[1]), "settling ends", id="settling-ends")
        keys[1].append(gone.publish(b"1, afterwards"))
        after = await came_from(client, expect, b"1, afterwards", 1)
        expect.ended(await settle(client, after), "settling ends", id="settling-ends")
        for key in keys[1]:
            await acknowledged_there(gone, expect, key, 1)
        nothing_strayed(expect, brokers, keys)


@scenario("PZQ-2.27", "MUST", "high", basis=["P8", "P10"], needs=["endpoints"], roles=CONSUMER)
async def one_of_two_goes_away(broker: PZQ, client: Client, expect: Expect) -> None:
    """One of two instances goes away for good.

    Fault: One message of each is delivered; the first instance ends and never comes back. The runner settles
    its message, then that of the second, which gets five more
    Pass: Settling the first one's ends by its deadline, reported or dropped; the second instance gets "1" for
    its own and for nothing else; the five are delivered and acknowledged
    """
    with instances(broker, 2) as brokers:
        keys = [[each.publish(b"%d" % n)] for n, each in enumerate(brokers)]
        await consuming_from(client, expect, brokers)
        found = [await came_from(client, expect, b"%d" % n, n) for n in range(2)]
        broker.crash()
        result = await client.op("settle", 3.0, sub="c1", ref=found[0].ref, how="ack")
        expect.ended(
            result,
            "settling for the one that is gone does not block forever",
            id="settling-for-the-one-that-is-gone-does-not-block-forever",
        )
        expect.within(
            result.elapsed_ms / 1000,
            limit_s(3.0),
            "settling ends in its deadline",
            id="settling-ends-in-its-deadline",
        )
        await settle(client, found[1])
        for n in range(5):
            keys[1].append(brokers[1].publish(b"more %d" % n))
            await settle(client, await came_from(client, expect, b"more %d" % n, 1))
        for key in keys[1]:
            await acknowledged_there(brokers[1], expect, key, 1)
        nothing_strayed(expect, brokers, keys)


@scenario("PZQ-2.28", "SHOULD", "high", basis=["P10"], needs=["endpoints"], roles=CONSUMER, timeout_s=40)
async def a_slow_instance(broker: PZQ, client: Client, expect: Expect) -> None:
    """A slow instance holds up no other.

    Fault: Three instances: the first one's deliveries are under way for 3 s, the second has no messages, the
    third has ten
    Pass: All ten of the third are handed to the application and acknowledged before the first one's first
    message has left; then that one comes and is acknowledged to the first
    """
    with instances(broker, 3) as brokers:
        broker.faults.add(latency(SLOW_S, role="deliver"))
        slow = broker.publish(b"slow")
        keys = [brokers[2].publish(b"%d" % n) for n in range(MANY)]
        await consuming_from(client, expect, brokers, on_message=auto())
        await until(lambda: len({ack.key for ack in acks(brokers[2])}) >= MANY or deliveries(broker), 5.0)
        done = [key for key in keys if b"1" in statuses(brokers[2], key)]
        expect.that(
            len(done) == MANY,
            "the third instance's messages are acknowledged before the slow one's has left",
            f"{len(done)} of {MANY}",
            id="the-third-instance-s-messages-are-acknowledged-before-the",
        )
        await until(
            lambda: deliveries(broker, slow), 2 * SLOW_S
        )  # what it takes counts from when it has left
        await came_from(client, expect, b"slow", 0)
        await acknowledged_there(broker, expect, slow, 0)
        nothing_strayed(expect, brokers, [[slow], [], keys])
