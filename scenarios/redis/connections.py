"""RED-3 Connections and credentials."""

from __future__ import annotations

import asyncio

from conformance.suite import Client, Expect, scenario
from fakebrokers import Redis
from fakebrokers.journal import Tap
from scenarios._common import until
from scenarios.redis._steps import CALLER, LOGIN, PASSWORD, asked, call, logins, works

ATTEMPTS_IN_10_S = 100  #: ten a second are still a pause each


@scenario("RED-3.01", "MUST", "high", basis=["D9"], roles=CALLER, server=LOGIN)
async def wrong_password(broker: Redis, client: Client, expect: Expect) -> None:
    """A wrong password.

    Fault: None; the first session has the wrong password, the second one the right one
    Pass: connect, or the first command, of the first one ends as `auth` with WRONGPASS, and no command was
    executed; the second session works
    Seen: redis-client#274; redis-rb#344
    """
    broker.store("key", "value")
    result = await client.connect("wrong", user=LOGIN["user"], password="not-it", timeout=5.0)
    if result.ok:
        result = await call(client, "GET", "key", session="wrong")
    expect.failed(result, ("auth",), "it ends as auth", id="it-ends-as-auth")
    criterion, id = "the code is that of the server", "the-code-is-that-of-the-server"
    expect.that(result.code in ("WRONGPASS", "NOAUTH"), criterion, result.code, id=id)
    await client.connected("right", **LOGIN)
    result = await call(client, "GET", "key", session="right")
    expect.ok(result, "the right password works", id="the-right-password-works")


@scenario("RED-3.02", "MUST", "critical", basis=["D9"], needs=["auto_reconnect"], roles=CALLER, server=LOGIN)
async def login_after_a_loss(broker: Redis, client: Client, expect: Expect) -> None:
    """The login after a loss.

    Fault: All connections are reset, three times
    Pass: Commands work within 10 s; none is answered NOAUTH
    Seen: eredis#9; riemann-tools#53; node-redis#1028
    """
    await client.connected(auto_reconnect=True, **LOGIN)
    await asked(client, expect, "SET", "key", "value")
    for _ in range(3):
        broker.kill(how="rst")
        await works(client, expect, "a command works after a loss", id="a-command-works-after-a-loss")
    said = broker.journal.select(kind="RedisError", tap=Tap.SAID)
    refused = [r for r in said if getattr(r.frame, "text", "").startswith("NOAUTH")]
    expect.equal(len(refused), 0, "no command is refused with NOAUTH", id="no-command-is-refused-with-noauth")


@scenario(
    "RED-3.03",
    "SHOULD",
    "high",
    basis=["D9"],
    needs=["auto_reconnect"],
    roles=CALLER,
    server=LOGIN,
    timeout_s=90,
)
async def password_expires(broker: Redis, client: Client, expect: Expect) -> None:
    """A password that is no longer valid.

    Fault: All connections are reset; from then on logins are refused with WRONGPASS for 10 s
    Pass: At most ten attempts a second; a command ends by its deadline, never successfully, as `auth` or
    `connection`, not as `internal`; or the application has been told that the session is over
    Seen: iredis#214; redis-client#274
    """
    await client.connected(auto_reconnect=True, **LOGIN)
    await asked(client, expect, "SET", "key", "value")
    mark = broker.journal.last_seq
    broker.call(lambda: setattr(broker.broker, "password", f"{PASSWORD} no longer"))
    broker.kill(how="rst")
    await asyncio.sleep(0.5)
    result = await call(client, "GET", "key", timeout=3.0)
    await asyncio.sleep(6.5)
    tried = len(logins(broker, mark))
    expect.exercised(tried, "the client did not connect again", id="the-client-did-not-connect-again")
    criterion, id = "at most ten attempts a second", "at-most-ten-attempts-a-second"
    expect.that(tried <= ATTEMPTS_IN_10_S, criterion, f"{tried} in 10 s", id=id)
    kinds = ("auth", "connection", "timeout", "closed")
    criterion, id = "a command ends without success", "a-command-ends-without-success"
    expect.failed(result, kinds, criterion, id=id)
    criterion = "a command ends as auth"
    expect.tolerate(result.word == "auth", criterion, str(result), id="a-command-ends-as-auth")


@scenario(
    "RED-3.04",
    "MUST",
    "critical",
    basis=["D12"],
    needs=["auto_reconnect"],
    roles=("caller", "consumer"),
    timeout_s=90,
    revision=2,
)
async def server_that_loads(broker: Redis, client: Client, expect: Expect) -> None:
    """A server that is back and still loads.

    Fault: All connections are reset; for 5 s what needs the data, and PING, is answered LOADING, and INFO
    tells that the server loads. As at redis-server, HELLO, CLIENT and SUBSCRIBE are carried out meanwhile
    Pass: Within 30 s commands work, and the subscription gets a message: LOADING was not for good
    Seen: ioredis#358; node-redis#2667; StackExchange.Redis#1913
    """
    await client.connected(auto_reconnect=True)
    expect.prepared(await client.subscribe("orders"))
    await asked(client, expect, "SET", "key", "value")
    broker.call(lambda: setattr(broker.broker, "loading", True))
    broker.kill(how="rst")
    await asyncio.sleep(1.0)
    call(client, "GET", "key", timeout=15.0)
    await asyncio.sleep(4.0)
    broker.call(lambda: setattr(broker.broker, "loading", False))
    said = [str(r.frame) for r in broker.journal.select(tap=Tap.SAID)]
    told = any("LOADING" in text or "loading:1" in text for text in said)
    expect.exercised(told, "nothing was answered LOADING", id="nothing-was-answered-loading")
    await works(client, expect, "a command works within 30 s", within_s=30.0, id="a-command-works-again")

    def is_heard() -> int:
        broker.publish("orders", "loaded")
        return len(client.messages())

    heard = await until(is_heard, 30.0)
    criterion, id = "the subscription gets a message", "the-subscription-gets-a-message"
    expect.that(heard, criterion, "none within 30 s", id=id)
