"""nats-py, unmodified, against the fake."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fakebrokers import NATS
from fakebrokers.core.frames import Role
from fakebrokers.errors import UsageError
from fakebrokers.faults import drop, reply, rst
from fakebrokers.journal import Tap
from fakebrokers.nats.faults import expire_login
from tests.eventually import PATIENCE_S
from tests.marked import PASSWORD

nats = pytest.importorskip("nats", reason="missing: nats-py")
nkeys = pytest.importorskip("nkeys", reason="missing: nkeys")

Client = Any


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 2 * PATIENCE_S))


async def soon(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), PATIENCE_S)


class Heard:
    """What came to a subscription."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[Any] = asyncio.Queue()

    async def come(self, message: Any) -> None:
        await self.messages.put(message)

    async def next(self) -> Any:
        return await asyncio.wait_for(self.messages.get(), PATIENCE_S)


def test_publish_subscribe_and_headers(fake_nats: NATS) -> None:
    async def main() -> None:
        client = await nats.connect(fake_nats.url)
        heard = Heard()
        await client.subscribe("orders.*", cb=heard.come)
        await client.publish("orders.new", b"hello", headers={"a": "b"})
        message = await heard.next()
        assert (message.subject, message.data, message.headers) == ("orders.new", b"hello", {"a": "b"})
        assert await asyncio.to_thread(fake_nats.publish, "orders.old", "by hand", headers={"c": "d"}) == 1
        message = await heard.next()
        assert (message.data, message.headers) == (b"by hand", {"c": "d"})
        assert fake_nats.subscriptions == [("orders.*", "")]
        await client.close()

    run(main)
    roles = {record.kind: record.role for record in fake_nats.journal.select(tap=Tap.SENT)}
    assert (roles["Hmsg"], roles["Info"]) == (Role.DELIVER, Role.HANDSHAKE)
    assert [each.keys for each in fake_nats.journal.select(role="publish", tap=Tap.RECEIVED)] == [
        ("orders.new",)
    ]


def test_each_message_goes_to_one_of_a_queue_group(fake_nats: NATS) -> None:
    async def main() -> None:
        client = await nats.connect(fake_nats.url)
        members = [Heard(), Heard()]
        for member in members:
            await client.subscribe("work", "workers", member.come)
        for number in range(4):
            await client.publish("work", b"%d" % number)
        heard = [[(await member.next()).data for _ in range(2)] for member in members]
        assert heard == [[b"0", b"2"], [b"1", b"3"]]
        await client.close()

    run(main)


def test_requests_and_no_responders(fake_nats: NATS) -> None:
    async def main() -> None:
        client = await nats.connect(fake_nats.url)

        async def help(message: Any) -> None:
            await message.respond(b"I can help")

        await client.subscribe("help", cb=help)
        assert (await client.request("help", b"", timeout=PATIENCE_S)).data == b"I can help"
        with pytest.raises(nats.errors.NoRespondersError):
            await client.request("nobody", b"", timeout=PATIENCE_S)
        fake_nats.faults.add(reply(503, role="publish", where={"subject": "help"}))
        with pytest.raises(nats.errors.NoRespondersError):
            await client.request("help", b"", timeout=PATIENCE_S)
        await client.close()

    run(main)


def test_drain_handles_what_has_come_and_leaves(fake_nats: NATS) -> None:
    async def main() -> None:
        client = await nats.connect(fake_nats.url)
        heard = Heard()
        await client.subscribe("a", cb=heard.come)
        for number in range(3):
            await client.publish("a", b"%d" % number)
        await client.drain()
        assert client.is_closed
        assert heard.messages.qsize() == 3

    run(main)
    assert [each.kind for each in fake_nats.journal.select(role="shut", tap=Tap.RECEIVED)] == ["Unsub"]
    assert fake_nats.subscriptions == []


def test_a_client_goes_to_another_node_and_listens_there() -> None:
    with NATS(nodes=2) as fake:

        async def main() -> None:
            back, heard = asyncio.Event(), Heard()

            async def reconnected() -> None:
                back.set()

            client = await nats.connect(
                fake.url, reconnected_cb=reconnected, reconnect_time_wait=0.01, dont_randomize=True
            )
            other = await nats.connect(fake.urls["node2"])
            assert len(client.servers) == 2  # it has been told of the second one
            await client.subscribe("a", cb=heard.come)
            await client.flush(timeout=round(PATIENCE_S))
            await other.publish("a", b"across")
            assert (await heard.next()).data == b"across"
            await asyncio.to_thread(fake.stop_node, 1)
            await soon(back)
            assert client.connected_url.netloc == fake.urls["node2"].removeprefix("nats://")
            await client.flush(timeout=round(PATIENCE_S))
            await other.publish("a", b"there")
            assert (await heard.next()).data == b"there"
            await client.close()
            await other.close()

        run(main)
        fake.start_node(1)
        assert [node.up for node in fake.nodes] == [True, True]


@pytest.mark.parametrize(
    ("options", "right", "wrong"),
    [
        (
            {"user": "u", "password": PASSWORD},
            {"user": "u", "password": PASSWORD},
            {"user": "u", "password": "x"},
        ),
        (
            {"users": {"u": PASSWORD}},
            {"user": "u", "password": PASSWORD},
            {"user": "v", "password": PASSWORD},
        ),
        ({"token": PASSWORD}, {"token": PASSWORD}, {"token": "x"}),
    ],
    ids=["user", "users", "token"],
)
def test_logging_in(options: dict[str, Any], right: dict[str, Any], wrong: dict[str, Any]) -> None:
    with NATS(**options) as fake:
        run(lambda: log_in(fake, right, wrong))


async def log_in(fake: NATS, right: dict[str, Any], wrong: dict[str, Any]) -> None:
    client = await nats.connect(fake.url, **right)
    await client.flush(timeout=round(PATIENCE_S))
    await client.close()
    for shown in (wrong, {}):
        assert "authorization violation" in (await refused(fake.url, **shown)).lower()


#: In a process of its own: after a refused connect nats-py forgets its socket.
REFUSED = """
import asyncio, json, ssl, sys, nats

async def main(url, options):
    if "cafile" in options:
        options["tls"] = ssl.create_default_context(cafile=options.pop("cafile"))
    try:
        await nats.connect(url, allow_reconnect=False, **options)
    except Exception as error:
        print(error)

asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
"""


async def refused(url: str, **options: Any) -> str:
    """The error of a client that is not let in."""
    command = [sys.executable, "-c", REFUSED, url, json.dumps(options)]
    done = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    return (await done.communicate())[0].decode()


def nkey() -> tuple[str, str]:
    """A seed, and the public key that belongs to it."""
    seed = nkeys.encode_seed(bytes(range(32)), nkeys.PREFIX_BYTE_USER)
    return seed.decode(), nkeys.from_seed(seed).public_key.decode()


def test_an_nkey_signs_what_the_server_asks_it_to() -> None:
    seed, public = nkey()
    other = nkeys.encode_seed(bytes(32), nkeys.PREFIX_BYTE_USER).decode()
    with NATS(nkeys=[public]) as fake:
        run(lambda: log_in(fake, {"nkeys_seed_str": seed}, {"nkeys_seed_str": other}))
        infos = fake.journal.select(kind="Info", tap=Tap.SENT)
        assert len({info.frame.options["nonce"] for info in infos if info.frame}) == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("key", ["", "x", "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"])
def test_what_is_no_nkey_is_refused_at_once(key: str) -> None:
    with pytest.raises(UsageError, match="expected the public nkey of a user"):
        NATS(nkeys=[key])


def test_tls_begins_behind_info() -> None:
    with NATS(tls=True) as fake:
        assert fake.tls is not None
        context = ssl.create_default_context(cafile=fake.tls.ca_file)

        async def main() -> None:
            client = await nats.connect(fake.urls["tls"], tls=context)
            heard = Heard()
            await client.subscribe("a", cb=heard.come)
            await client.publish("a", b"x" * 100_000)
            assert len((await heard.next()).data) == 100_000
            await client.close()

        run(main)


@pytest.mark.parametrize("certificate", ["expired", "wrong-host", "self-signed"])
def test_bad_certificates(certificate: str) -> None:
    with NATS(tls=certificate) as fake:

        async def main() -> None:
            assert fake.tls is not None
            told = await refused(fake.urls["tls"], cafile=str(fake.tls.ca_file))
            assert "certificate" in told.lower()

        run(main)


def test_faults_by_role(fake_nats: NATS) -> None:
    """A message that is lost, a connection that is reset, a login that ends: each seen by the client."""
    fake_nats.faults.add(drop(role="deliver", nth=1), rst(role="publish", where={"subject": "cut"}))

    async def main() -> None:
        back, closed, heard = asyncio.Event(), asyncio.Event(), Heard()

        async def ended() -> None:
            closed.set()

        async def reconnected() -> None:
            back.set()

        client = await nats.connect(
            fake_nats.url,
            reconnected_cb=reconnected,
            closed_cb=ended,
            reconnect_time_wait=0.01,
        )
        await client.subscribe("a", cb=heard.come)
        await client.publish("a", b"lost")
        await client.publish("a", b"comes")
        assert (await heard.next()).data == b"comes"
        await client.publish("cut", b"")
        await soon(back)
        fake_nats.faults.add(expire_login(role="publish", where={"subject": "end"}))
        await client.publish("end", b"")
        await soon(closed)
        assert "user authentication expired" in str(client.last_error).lower()

    run(main)


def test_headers_of_what_a_test_publishes_end_with_an_empty_line(fake_nats: NATS) -> None:
    """Clients make do without it, and a server writes it."""
    with socket.create_connection((fake_nats.host, fake_nats.port)) as client:
        client.sendall(b'CONNECT {"verbose":false,"headers":true}\r\nSUB a 1\r\n')
        fake_nats.wait_for(kind="Sub")
        fake_nats.publish("a", b"hi", headers={"k": "v"})
        fake_nats.publish("a", b"end")
        heard = b""
        while not heard.endswith(b"end\r\n"):
            heard += client.recv(4096)
    assert b"HMSG a 1 18 20\r\nNATS/1.0\r\nk: v\r\n\r\nhi\r\n" in heard
