"""RED-2 Subscriptions."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import Redis
from scenarios._common import until
from scenarios.redis._steps import BOTH, CONSUMER, bodies, call, plain

WAYS = {"channel": "orders", "pattern": "order*", "shard": "shard"}
PUSHES = (b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", b">2\r\n$6\r\nfuture\r\n:7\r\n")


async def _listening(client: Client, expect: Expect, way: str) -> None:
    options: dict[str, Any] = {} if way == "channel" else {"way": way}
    expect.prepared(await client.subscribe(WAYS[way], way, **options))


def _publish(broker: Redis, body: str) -> None:
    """A message for the channel and the pattern, and one for the shard."""
    broker.publish("orders", body)
    broker.call(lambda: broker.broker.route_sharded("shard", body.encode()))


@scenario(
    "RED-2.01", "MUST", "critical", basis=["D5"], needs=["auto_reconnect"], roles=CONSUMER, timeout_s=90
)
async def subscribed_again(broker: Redis, client: Client, expect: Expect) -> None:
    """Subscriptions after a reconnect.

    Fault: A channel, a pattern and a sharded channel, as far as the library has them; all connections are
    reset, and refused for 3 s; twice
    Pass: Within 30 s each of them gets a new message, once
    Seen: redis-py#2089; ioredis#85; redis-py#1464
    """
    await client.connected(auto_reconnect=True)
    ways = [way for way in WAYS if way != "shard" or client.can("shards")]
    for way in ways:
        await _listening(client, expect, way)
    for turn in (1, 2):
        broker.refuse()
        broker.kill(how="rst")
        await asyncio.sleep(3.0)
        broker.restart()
        number = 0
        end = client.now + 30.0
        seen: dict[str, list[bytes]] = {}
        while client.now < end:
            number += 1
            _publish(broker, f"turn {turn}, {number}")
            await asyncio.sleep(0.5)
            prefix = f"turn {turn}, ".encode()
            seen = {way: [one for one in bodies(client, way) if one.startswith(prefix)] for way in ways}
            if all(seen.values()):
                break
        for way, got in seen.items():
            criterion, id = f"{way}: a new message comes", slug("{}-a-new-message-comes", way)
            expect.that(got, criterion, f"none within 30 s after loss {turn}", id=id)
            criterion, id = f"{way}: each message comes once", slug("{}-each-message-comes-once", way)
            expect.equal(len(got), len(set(got)), criterion, id=id)


@scenario("RED-2.02", "MUST", "high", basis=["D5"], needs=["auto_reconnect"], roles=CONSUMER, timeout_s=60)
async def ended_while_away(broker: Redis, client: Client, expect: Expect) -> None:
    """A subscription that the application ends while the server is away.

    Fault: Two channels; all connections are reset, and refused; the application unsubscribes from one; the
    server is back after 2 s
    Pass: Within 30 s the other one gets a message; the one that has ended is not on the wire 2 s later, and
    gets none
    Seen: StackExchange.Redis#1110; redis-py#764
    """
    await client.connected(auto_reconnect=True)
    for name in ("kept", "ended"):
        expect.prepared(await client.subscribe(name, name))
    broker.refuse()
    broker.kill(how="rst")
    await asyncio.sleep(0.5)
    ending = client.begin("unsubscribe", 5.0, sub="ended")
    await asyncio.sleep(1.5)
    broker.restart()
    expect.ended(await ending, "unsubscribe ends by its deadline", id="unsubscribe-ends-by-its-deadline")
    back = await until(lambda: "kept" in broker.subscriptions, 30.0)
    expect.that(back, "the other one is there again", broker.subscriptions, id="the-other-one-is-there-again")
    await asyncio.sleep(2.0)
    for name in ("kept", "ended"):
        broker.publish(name, f"for {name}")
    got = await client.wait_messages(1, "kept")
    expect.equal(len(got), 1, "the other one gets a message", id="the-other-one-gets-a-message")
    there, criterion = broker.subscriptions, "the one that has ended is not on the wire"
    expect.equal(there, ["kept"], criterion, id="the-one-that-has-ended-is-not-on-the-wire")
    got, criterion = client.messages("ended"), "the one that has ended gets nothing"
    expect.equal(got, [], criterion, id="the-one-that-has-ended-gets-nothing")


@scenario("RED-2.03", "MUST", "high", basis=["D6"], needs=["resp3"], roles=BOTH)
async def pushes_between_replies(broker: Redis, client: Client, expect: Expect) -> None:
    """Pushes between replies, in RESP3.

    Fault: Ten commands, each with a message and pushes of kinds that nobody asked for before its reply, on
    every connection
    Pass: Each command has its own reply; each message comes once, in order; the pushes harm nothing
    Seen: hiredis#825; redis#11784; bun#32858
    """
    await client.connected(resp=3)
    expect.prepared(await client.subscribe("orders"))
    wanted = []
    for number in range(10):
        broker.store(f"key {number}", f"value {number}")
        begun = call(client, "GET", f"key {number}")
        for connection in [one["name"] for one in broker.connections]:
            broker.say_raw(connection, PUSHES[number % 2])
        wanted.append(b"message %d" % number)
        broker.publish("orders", wanted[-1])
        value = expect.ok(await begun, f"command {number} works", id="command-n-works")["value"]
        criterion, id = f"command {number} has its own reply", "command-n-has-its-own-reply"
        expect.equal(plain(value), f"value {number}".encode(), criterion, id=id)
    await client.wait_messages(len(wanted))
    criterion, id = "each message comes once, in order", "each-message-comes-once-in-order"
    expect.equal(bodies(client), wanted, criterion, id=id)


@scenario("RED-2.04", "MUST", "high", basis=["D7"], roles=CONSUMER)
async def pattern_and_channel(broker: Redis, client: Client, expect: Expect) -> None:
    """A pattern, and a channel that fits it.

    Fault: None; a message to the channel, and one to another channel that fits
    Pass: The channel's subscription gets the first one, the pattern's both, each once, with the channel that
    it was published to
    Seen: ioredis#85; bun#33450
    """
    await client.connected()
    for way in ("channel", "pattern"):
        await _listening(client, expect, way)
    for channel in ("orders", "order-7"):
        broker.publish(channel, f"to {channel}")
    await client.wait_messages(2, "pattern")
    got = bodies(client, "channel")
    criterion, id = "the channel gets its message once", "the-channel-gets-its-message-once"
    expect.equal(got, [b"to orders"], criterion, id=id)
    got = bodies(client, "pattern")
    criterion, id = "the pattern gets both once", "the-pattern-gets-both-once"
    expect.equal(got, [b"to orders", b"to order-7"], criterion, id=id)
    channels = [message.meta.get("channel") for message in client.messages("pattern")]
    criterion, id = "each has the channel that it was published to", "each-has-its-channel"
    expect.equal(channels, ["orders", "order-7"], criterion, id=id)
