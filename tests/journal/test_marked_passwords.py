"""A marked password is looked for in all that is kept of what clients say, however it came."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fakebrokers.control.rows import broker_row, journal_row
from fakebrokers.control.values import encode, plain
from fakebrokers.journal import RunJournal
from fakebrokers.proxy import Proxy
from fakebrokers.proxy.api import ToxiproxyApi
from fakebrokers.server import FakeServer
from tests.eventually import PATIENCE_S
from tests.journal.logins import LOGINS, Login
from tests.marked import PASSWORD, shown_in
from tests.proxy.control import Api


class Client(asyncio.Protocol):
    """Hears what the fake says, and takes no notice."""

    def connection_made(self, transport: Any) -> None:
        pass


def kept(server: FakeServer, written: RunJournal) -> str:
    """All that anybody can see of what went over the wire."""
    records = server.journal.records()
    seen: list[Any] = [repr(msgspec.structs.asdict(record)) for record in records]
    seen += [f"{record!r} {record}" for record in records]
    seen += [encode(journal_row(record)).decode() for record in records]
    seen += [encode(plain(row)).decode() for row in server.connections]
    seen += [encode(broker_row("b", server, [])).decode(), server.journal_excerpt()]
    seen += [repr(line) for line in written.log().frames]
    seen += [f"{error!r} {error.__notes__}" for error in server.engine.errors]
    return "\n".join(seen)


async def said(login: Login, *, cut: int) -> str:
    """What is kept once a client has logged in; its bytes come in pieces of `cut`."""
    written = RunJournal(None, "run", frames=True, body_limit=None)
    server = login.make(memory=True, **login.options)
    async with server:
        server.journal.sink = written
        link = server.connect_memory(Client())
        for unit in login.sent:
            for at in range(0, len(unit), cut):
                link.write(unit[at : at + cut])
                await asyncio.sleep(0)
            await asyncio.sleep(0)
        for _ in range(5):
            await asyncio.sleep(0)
        open_now = kept(server, written)
        link.close()
        for _ in range(5):
            await asyncio.sleep(0)
        server.journal.sink = None
        return open_now + kept(server, written)


@pytest.mark.parametrize("login", LOGINS, ids=[login.name for login in LOGINS])
def test_no_password_is_kept(login: Login) -> None:
    for cut in (1 << 20, 7):
        text = asyncio.run(said(login, cut=cut))
        assert "accepted" in text and "in" in text
        assert shown_in(text) == [], [line for line in text.splitlines() if shown_in(line)][:3]


@pytest.mark.parametrize("reads_frames", [True, False], ids=["frames", "bytes"])
@pytest.mark.parametrize(
    ("wire", "protocol"),
    [
        ("rabbitmq-stream", "rabbitmq-stream"),
        ("nats", "moleculer"),
        ("redis", "moleculer"),
        ("mqtt", "moleculer"),
        ("blazingmq", "blazingmq"),
        ("narconi", "narconi"),
    ],
)
def test_no_password_is_kept_by_a_proxy(tmp_path: Path, wire: str, protocol: str, reads_frames: bool) -> None:
    logins = [login for login in LOGINS if login.name.startswith(f"{wire}: ")]
    recording = tmp_path / "recording.jsonl"
    options: dict[str, Any] = {}
    if reads_frames:
        options = {"protocol": protocol, "wire": wire if protocol == "moleculer" else "", "record": recording}
    written = RunJournal(None, "run", frames=True, body_limit=None)
    with (
        logins[0].make(**logins[0].options) as server,
        Proxy(f"x://bob:{PASSWORD}@127.0.0.1:{server.port}", **options) as proxy,
    ):
        proxy.call(lambda: setattr(proxy.journal, "sink", written))
        for number, login in enumerate(logins, 1):
            with socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as client:
                client.sendall(b"".join(login.sent))
                client.shutdown(socket.SHUT_WR)
                proxy.wait_for(kind="closed", connection=f"c{number}", timeout=PATIENCE_S)
        proxy.call(lambda: setattr(proxy.journal, "sink", None))
        text = kept(proxy, written)
    assert text.count("accepted") >= len(logins)
    assert shown_in(text) == [], [line for line in text.splitlines() if shown_in(line)][:3]
    if reads_frames:
        assert "heard" in recording.read_text()
        assert shown_in(recording.read_text()) == []


def test_the_proxys_own_api_shows_no_password() -> None:
    with ToxiproxyApi() as api:
        control = Api(api.url)
        row = {"name": "a", "listen": "127.0.0.1:0", "upstream": f"amqp://bob:{PASSWORD}@127.0.0.1:1"}
        assert control("POST", "/proxies", row)[0] == 201
        assert shown_in(str(control("GET", "/proxies"))) == []
