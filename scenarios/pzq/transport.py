"""PZQ-3 Transport: peers that do not speak ZMTP as they should."""

from __future__ import annotations

import asyncio

from conformance.suite import Client, Expect, scenario
from fakebrokers import PZQ
from scenarios._common import limit_s, until
from scenarios.pzq._raw import RawPeer, frame, greet, message, reset
from scenarios.pzq._steps import (
    CONSUMER,
    PUBLISHER,
    auto,
    begun,
    connected_again,
    delivered,
    process_ends,
    publish,
)

UNKNOWN = ("timeout", "connection")
SECONDS = 4.0  #: how long connects to the wrong peer are counted


async def _produce_in_vain(client: Client, expect: Expect) -> None:
    deadline = client.deadline_s("publish", 1.0)
    result = await publish(client, b"hello", timeout=1.0)
    expect.failed(
        result,
        UNKNOWN,
        "the produce ends timeout or connection, not definite",
        definite=False,
        id="the-produce-ends-timeout-or-connection-not-definite",
    )
    expect.within(result.elapsed_ms / 1000, limit_s(deadline), "at its deadline", id="at-its-deadline")


ELSEWHERE = "the client speaks to a peer of the script's own"


@scenario(
    "PZQ-3.05",
    "SHOULD",
    "medium",
    basis=["P1"],
    roles=PUBLISHER,
    sockets=True,
    unconnected=ELSEWHERE,
    timeout_s=60,
    revision=2,
)
async def greeting_stalls(broker: PZQ, client: Client, expect: Expect) -> None:
    """ZMTP greeting stalls.

    Fault: Raw listener accepts TCP and sends nothing; produce with 1 s, then `close` with 3 s
    Pass: produce ends `timeout`/`connection` at its deadline, not definite, or the connect does, where it
    waits for the greeting; `close` ends in its deadline; process exits
    Profile: both
    Seen: iggy#4262
    """

    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await asyncio.sleep(60)

    async with RawPeer(silence) as peer:
        result = await client.connect(endpoints=peer.endpoints, timeout=1.0)
        if begun(client, expect, result, UNKNOWN, timeout=1.0):
            await _produce_in_vain(client, expect)
        expect.exercised(peer.accepted, "the client did not connect", id="the-client-did-not-connect")
        closing = await client.close(timeout=3.0)
        expect.ended(closing, "close ends", id="close-ends")
        expect.within(
            closing.elapsed_ms / 1000,
            limit_s(3.0),
            "close ends in its deadline",
            id="close-ends-in-its-deadline",
        )
        await process_ends(client, expect)


@scenario(
    "PZQ-3.06",
    "SHOULD",
    "low",
    basis=["P1", "P5"],
    roles=PUBLISHER,
    sockets=True,
    unconnected=ELSEWHERE,
    revision=2,
)
async def wrong_peer_type(broker: PZQ, client: Client, expect: Expect) -> None:
    """ZMTP wrong peer type.

    Fault: Raw listener announces PUB as its socket type, 4 s
    Pass: No crash; at most 20 connects per second; produce ends at its deadline, or the connect does, where
    it waits for the handshake. Recovery on the same socket is not asked for
    Profile: both
    Seen: kafka-python#1892; measured: libzmq 4.3.5 connects once and gives up
    """

    async def publisher(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await greet(reader, writer, "PUB")

    async with RawPeer(publisher) as peer:
        since = asyncio.get_running_loop().time()
        if begun(client, expect, await client.connect(endpoints=peer.endpoints)):
            await _produce_in_vain(client, expect)
        await asyncio.sleep(max(0.0, SECONDS - (asyncio.get_running_loop().time() - since)))
        expect.exercised(peer.accepted, "the client did not connect", id="the-client-did-not-connect")
        limit = 20 * SECONDS
        expect.that(
            peer.accepted <= limit,
            "at most 20 connects per second",
            f"{peer.accepted} in {SECONDS} s",
            id="at-most-n-connects-per-second",
        )


@scenario(
    "PZQ-3.07", "MUST", "high", basis=["P5"], roles=CONSUMER, sockets=True, unconnected=ELSEWHERE, revision=2
)
async def cut_by_rst(broker: PZQ, client: Client, expect: Expect) -> None:
    """Frame cut by RST.

    Fault: RST within a multi-part message
    Pass: Partial message never delivered (a client without `auto_reconnect` is connected anew by the script)
    Seen: jeromq#335
    """
    head = (b"1700000000000000|key", b"1700000000000000", b"5000000", b"")
    is_cut = asyncio.Event()

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await greet(reader, writer, "DEALER")
        if number == 1:
            whole = [*head, b"the first half", b"the second half"]
            writer.write(b"".join(frame(part, True) for part in whole[:-1]))
            await writer.drain()
            await asyncio.sleep(0.2)
            reset(writer)
            is_cut.set()
        else:
            writer.write(message([*head, b"whole"]))

    async with RawPeer(cut) as peer:
        where = {**broker.where, "send": peer.endpoints["send"]}
        await client.connected(endpoints=where)
        await client.subscribed("", on_message=auto())
        if not client.reconnects("consumer"):
            await until(is_cut.is_set, 5.0)
            await asyncio.sleep(0.2)
            await connected_again(client, expect, endpoints=where)
            await client.subscribed("", on_message=auto())
        for _ in range(100):
            if peer.accepted > 1:
                break
            await asyncio.sleep(0.05)
        expect.exercised(
            peer.accepted > 1,
            "the client did not come back after the RST",
            id="the-client-did-not-come-back-after-the-rst",
        )
        await delivered(
            client,
            expect,
            b"whole",
            criterion="a whole message on the next connection is delivered",
            id="a-whole-message-on-the-next-connection-is-surfaced",
        )
        bodies = [found.body for found in client.messages("c1")]
        expect.equal(
            len(bodies),
            1,
            "the message that was cut is never delivered",
            id="the-message-that-was-cut-is-never-surfaced",
        )
