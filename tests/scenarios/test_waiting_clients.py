"""A correct client of PZQ that is not libzmq fails nothing for it.

Its connect waits for the daemon's handshake and reports what comes of it, and a connection that is lost is
left to the application, as it declares.
"""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Sequence
from typing import Any

import pytest

from conformance.clients.mutants import matrix
from conformance.clients.mutants.matrix import GOOD
from conformance.clients.mutants.pzq.bare import BareSocket
from conformance.clients.reference.kit import ClientError, adapter_of
from conformance.clients.reference.pzq.ops import REFERENCE
from conformance.clients.reference.pzq.sockets import Connector, OnMessage, Socket, joined
from conformance.suite.judge import Judgement
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario
from fakebrokers.pzq import memory
from fakebrokers.pzq.memory import SocketType
from tests.scenarios.proofs import in_memory

#: All rows in which a daemon goes away, is not there, or is none.
IDS = (
    *("NET-1.05", "NET-1.06", "NET-1.12", "NET-1.13", "PZQ-1.16", "PZQ-1.17"),
    *("PZQ-2.23", "PZQ-2.26", "PZQ-3.05", "PZQ-3.06", "PZQ-3.07"),
)
ROWS = [item for item in all_scenarios() if item.protocol == "pzq" and item.id in IDS and not item.variant]


class Once(BareSocket):
    """Connects once; `up` ends with the peer's READY, or with what came instead."""

    def __init__(self, endpoint: str, kind: SocketType, on_message: OnMessage) -> None:
        self.up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        super().__init__(endpoint, kind, on_message)

    async def _run(self, host: str, port: int) -> None:
        try:
            reader, writer = await asyncio.open_connection(host, port)
            try:
                await self._talk(reader, writer)
            finally:
                writer.close()
            raise EOFError("the peer has gone")
        except (OSError, EOFError) as error:
            self._report(f"{type(error).__name__}: {error}")
        self.lost()

    def feed(self, data: bytes) -> None:
        if b"Socket-Type\0\0\0\x03PUB" in data:
            self._report("the peer is a PUB")
        elif not self.up.done():
            self.up.set_result(None)
        super().feed(data)

    def _report(self, text: str) -> None:
        if not self.up.done():
            self.up.set_exception(ClientError("connection", text))


class InMemory:
    """The same without sockets."""

    def __init__(self, endpoint: str, kind: SocketType, on_message: OnMessage) -> None:
        self.up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._socket = memory.connect(endpoint, kind, on_message, -1)
        self.send, self.close = self._socket.send, self._socket.close
        if self._socket._connection is None:
            self.up.set_exception(ClientError("connection", "nothing listens"))
        else:
            self.up.set_result(None)


made: list[Once | InMemory] = []


class Waiting(Connector):
    """Keeps what it has made."""

    def in_memory(self, endpoint: str, kind: SocketType, on_message: OnMessage) -> Socket:
        made.append(InMemory(endpoint, kind, on_message))
        return made[-1]

    def over_sockets(self, endpoints: Sequence[str], kind: SocketType, on_message: OnMessage) -> Socket:
        made.extend(one := [Once(each, kind, on_message) for each in endpoints])
        return joined(one)


class WaitingClient(adapter_of(REFERENCE, [Waiting])):  # type: ignore[misc]
    """Ends its ops that connect when the sockets are there; a session that could not be had is none."""

    caps = " ".join(word for word in REFERENCE.caps.split() if word != "auto_reconnect")
    patience_s: float | None = None  #: how long they wait, else by the request

    async def _perform(self, request: dict[str, Any]) -> Any:
        made.clear()
        value = await super()._perform(request)
        if request["op"] in ("connect", "subscribe"):
            waiting, patience_s = list(made), self.patience_s or (request.get("timeout_ms") or 5000) / 1000
            try:
                await asyncio.wait_for(asyncio.gather(*(one.up for one in waiting)), patience_s)
            except TimeoutError:
                self._forget_session(request)
                raise ClientError("timeout", f"no handshake within {patience_s} s") from None
            except ClientError:
                self._forget_session(request)
                raise
        return value

    def _forget_session(self, request: dict[str, Any]) -> None:
        if request["op"] == "connect":
            self.sessions.pop(request["args"]["session"]).abort()


def judged(item: Scenario, client: Any, monkeypatch: pytest.MonkeyPatch) -> Judgement:
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    with warnings.catch_warnings():  # a peer of the script's own may be open when the loop ends
        warnings.simplefilter("ignore", ResourceWarning)
        found = matrix.run(item, invariants=True)
        gc.collect()
    return found


QUICK, SLOW = (
    [pytest.param(item, id=item.label) for item in ROWS if in_memory(item) is quick]
    for quick in (True, False)
)


def fails_nothing(item: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    found = judged(item, WaitingClient, monkeypatch)
    assert found.verdict in GOOD, found.reason
    assert not found.broken


@pytest.mark.parametrize("item", QUICK)
def test_who_waits_for_the_daemon_fails_nothing(item: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_nothing(item, monkeypatch)


@pytest.mark.full
@pytest.mark.parametrize("item", SLOW)
def test_who_waits_for_the_daemon_fails_nothing_over_sockets(
    item: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails_nothing(item, monkeypatch)
