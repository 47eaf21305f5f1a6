"""RED-1 Commands and replies."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import Redis
from fakebrokers.faults import Fault, fault, latency
from fakebrokers.faults.effects import Drop, Inject, Rst
from scenarios._common import maybe_reconnecting, until
from scenarios.redis._steps import CALLER, asked, call, commands, plain, works

HUNDRED = 100
#: Errors with which a server says that it cannot do this now, or not here; the last word is nobody's.
ERRORS = {
    "LOADING": "LOADING Redis is loading the dataset in memory",
    "READONLY": "READONLY You can't write against a read only replica.",
    "OOM": "OOM command not allowed when used memory > 'maxmemory'.",
    "MISCONF": "MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist",
    "FUTURE": "FUTURE nobody knows this word",
}
POP_S = 4.0


@scenario("RED-1.01", "MUST", "critical", basis=["D1"], roles=CALLER)
async def own_replies(broker: Redis, client: Client, expect: Expect) -> None:
    """100 commands at once.

    Fault: Replies come late by chance, in their order
    Pass: Each command ends with its own reply
    Seen: coredis#143; redis-py#2624
    """
    await client.connected()
    for number in range(HUNDRED):
        broker.store(f"key {number}", f"value {number}")
    broker.faults.add(latency(0.05, jitter=0.05, kind="Reply", direction="out"))
    calls = [call(client, "GET", f"key {number}", timeout=10.0) for number in range(HUNDRED)]
    for number, begun in enumerate(calls):
        value = expect.ok(await begun, f"command {number} works", id="command-n-works")["value"]
        wanted = f"value {number}".encode()
        expect.equal(
            plain(value), wanted, f"command {number} has its own reply", id="command-n-has-its-own-reply"
        )


@scenario("RED-1.02", "MUST", "critical", basis=["D8"], needs=["cancel"], roles=CALLER)
async def pop_called_off(broker: Redis, client: Client, expect: Expect) -> None:
    """A pop that is called off takes nothing.

    Fault: BLPOP without a limit waits and is cancelled; 1 s later an element is pushed
    Pass: The element is there for the next pop; a command works
    Seen: redis-py#2579; redis-py#166
    """
    await client.connected()
    waiting = call(client, "BLPOP", "list", "0", timeout=20.0)
    came = await until(lambda: commands(broker, "BLPOP"), 4.0)
    expect.exercised(came, "no BLPOP came", id="no-blpop-came")
    await client.adapter.cancel(waiting)
    ended = await waiting
    expect.failed(ended, ("cancelled",), "the pop ends as cancelled", id="the-pop-ends-as-cancelled")
    await asyncio.sleep(1.0)
    broker.push("list", b"element")
    result = await call(client, "LPOP", "list")
    value = expect.ok(result, "the next pop works", id="the-next-pop-works")["value"]
    criterion, id = "the next pop gets the element", "the-next-pop-gets-the-element"
    expect.equal(plain(value), b"element", criterion, id=id)
    await works(client, expect, "a command works", id="a-command-works")


@scenario("RED-1.03", "MUST", "critical", basis=["D10"], roles=CALLER, ops=("redis.pipeline",))
async def error_in_a_pipeline(broker: Redis, client: Client, expect: Expect) -> None:
    """An error in a pipeline.

    Fault: SET, INCR of what is no number, GET, an unknown command, and INCR, said at once
    Pass: Each command but those two has its own reply, and those have their errors; the next command has its
    own reply
    Seen: go-redis#629; redis-rs#436
    """
    await client.connected()
    given = [["SET", "k", "v"], ["INCR", "k"], ["GET", "k"], ["NOSUCH"], ["INCR", "n"]]
    result = await client.op("redis.pipeline", session="s1", commands=given)
    rows = expect.ok(result, "the pipeline ends with its results", id="the-pipeline-ends-with-its-results")
    got = [row["error"] if "error" in row else plain(row["value"]) for row in rows["results"]]
    wanted = [b"OK", "ERR", b"v", "ERR", 1]
    expect.equal(got, wanted, "each command has its own result", id="each-command-has-its-own-result")
    value = expect.ok(await call(client, "GET", "k"), "the next command works", id="the-next-command-works")
    criterion, id = "the next command has its own reply", "the-next-command-has-its-own-reply"
    expect.equal(plain(value["value"]), b"v", criterion, id=id)


@scenario("RED-1.04", "MUST", "high", basis=["D2", "D12"], roles=CALLER)
async def errors_by_their_word(broker: Redis, client: Client, expect: Expect) -> None:
    """Errors of a server that cannot serve now.

    Fault: A GET is answered LOADING, READONLY, OOM, MISCONF, and by a word that no server has
    Pass: The command ends as `refused` with that word, or works because it was asked again; never success
    with another value; the session stays usable
    Seen: ioredis#358; redis#4624; go-redis#3282
    """
    await client.connected()
    await asked(client, expect, "SET", "key", "value")
    for word, text in ERRORS.items():
        mark = broker.journal.last_seq
        name = broker.faults.add(_instead(text))
        result = await call(client, "GET", "key")
        expect.exercised(broker.faults.fired(name), "no GET was answered", id="no-get-was-answered")
        broker.faults.remove(name)
        if result.ok and len(commands(broker, "GET", mark)) > 1:
            continue  # it was asked again, as a client may
        criterion, id = f"{word}: the command is refused", slug("{}-the-command-is-refused", word)
        expect.failed(result, ("refused",), criterion, id=id)
        criterion, id = f"{word} is the code", slug("{}-is-the-code", word)
        expect.equal(result.code, word, criterion, id=id)
    await works(client, expect, "a command works", id="a-command-works")


def _instead(text: str) -> Fault:
    """The next reply with the value is this error."""
    effects = (Drop(), Inject(kind="RedisError", fields={"text": text}))
    return fault(*effects, kind="Reply", direction="out", where={"value": b"value"}, nth=1, scope="run")


@scenario("RED-1.05", "SHOULD", "critical", basis=["D11"], needs=["auto_reconnect"], roles=CALLER)
async def counted_once(broker: Redis, client: Client, expect: Expect) -> None:
    """A reply that is lost with its connection.

    Fault: The server executes INCR; its connection is reset in place of the reply
    Pass: The server has counted once, as nobody but the application can know whether twice is harmless; the
    command ends as `connection` or `timeout`; a command works afterwards
    Seen: ioredis#61; redis-py#2624
    """
    await client.connected(auto_reconnect=True)
    await asked(client, expect, "SET", "n", "0")
    match: dict[str, Any] = {"kind": "Reply", "direction": "out", "where": {"value": 1}}
    broker.faults.add(fault(Drop(), Rst(), **match, nth=1, scope="run", name="lost"))
    result = await call(client, "INCR", "n", timeout=10.0)
    fired = broker.faults.fired("lost")
    expect.exercised(fired, "the reply was not lost", id="the-reply-was-not-lost")
    await works(client, expect, "a command works afterwards", within_s=30.0, id="a-command-works-afterwards")
    count = await asked(client, expect, "GET", "n")
    expect.equal(count, b"1", "the server has counted once", id="the-server-has-counted-once")
    criterion, id = "INCR ends as connection", "incr-ends-as-connection"
    expect.failed(result, ("connection", "timeout"), criterion, id=id)


@scenario("RED-1.06", "MUST", "high", basis=["D8"], roles=CALLER, timeout_s=60)
async def pop_that_waits_long(broker: Redis, client: Client, expect: Expect) -> None:
    """A pop that waits for some seconds.

    Fault: None; BLPOP of 4 s with nothing to pop, then one whose element comes after 3 s. The op has 10 s
    Pass: The first one ends with nothing, when the server says so; the second one with its element
    Seen: redis-py#583; lettuce#1179; NRedisStack#421
    """
    await client.connected(**maybe_reconnecting(client))
    result = await call(client, "BLPOP", "list", f"{POP_S:g}", timeout=10.0)
    value = expect.ok(result, "a pop of nothing works", id="a-pop-of-nothing-works")["value"]
    expect.equal(value, None, "a pop of nothing returns nothing", id="a-pop-of-nothing-returns-nothing")
    took, criterion = result.elapsed_ms / 1000, "a pop of nothing ends when the server says so"
    expect.not_before(took, POP_S * 0.9, criterion, id=slug("{}", criterion))
    waiting = call(client, "BLPOP", "list", f"{POP_S:g}", timeout=10.0)
    await asyncio.sleep(3.0)
    broker.push("list", b"element")
    value = expect.ok(await waiting, "a pop gets its element", id="a-pop-gets-its-element")["value"]
    wanted = [b"list", b"element"]
    expect.equal(plain(value), wanted, "a pop gets its element", id="a-pop-gets-its-element")
