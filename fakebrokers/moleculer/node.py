"""A fake node as tests see it: safe from any thread.

node = moleculer.node("fake-1", services={"math": {"add": lambda ctx: ctx.params["a"] + ctx.params["b"]}})
assert node.call("shop.price", {"id": 1}) == 3
assert [request.params for request in node.requests] == [{"a": 1, "b": 2}]
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from fakebrokers.errors import WaitTimeout
from fakebrokers.moleculer.nodes import FakeNode
from fakebrokers.moleculer.packets import BY_COMMAND, Event, Packet, Pong, Request, packet_from
from fakebrokers.moleculer.peers import Peer
from fakebrokers.moleculer.services import Action, Service, Stream, services_from
from fakebrokers.server import FakeServer

P = TypeVar("P", bound=Packet)
T = TypeVar("T")


class Node:
    """See the module's text. `core` is the node itself; look, do not touch, from other threads."""

    def __init__(self, server: FakeServer, core: FakeNode) -> None:
        self.core = core
        self._server = server

    def __repr__(self) -> str:
        return f"Node({self.id!r})"

    @property
    def id(self) -> str:
        """Its nodeID."""
        return self.core.id

    # what it was asked

    @property
    def received(self) -> list[Packet]:
        """All packets of others that it has heard, oldest first."""
        return self._server.call(lambda: list(self.core.received))

    def heard(self, kind: type[P]) -> list[P]:
        """The packets of one kind that it has heard."""
        return [packet for packet in self.received if isinstance(packet, kind)]

    @property
    def requests(self) -> list[Request]:
        """The requests that it has heard."""
        return self.heard(Request)

    @property
    def events(self) -> list[Event]:
        """The events that it has heard."""
        return self.heard(Event)

    @property
    def broken(self) -> list[str]:
        """What was wrong with packets that it could not read, or dropped."""
        return self._server.call(lambda: list(self.core.broken))

    @property
    def failures(self) -> list[BaseException]:
        """What its functions raised that was no `MoleculerError`."""
        return self._server.call(lambda: list(self.core.failures))

    @property
    def peers(self) -> dict[str, Peer]:
        """The other nodes that it knows, by their ids."""
        return self._server.call(lambda: {peer.id: peer for peer in self.core.peers})

    # what it asks

    def call(
        self,
        action: str,
        params: Any = None,
        *,
        target: str = "",
        timeout: float = 5.0,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, Any] | None = None,
        stream: Stream | None = None,
        **fields: Any,
    ) -> Any:
        """Call an action of another node; returns the data, or a `Stream`.

        Args:
            target: The node to ask; "" for any that offers the action.
            timeout: Seconds; the other node is told, too.
            meta, headers: Go along.
            stream: What is uploaded.
            fields: Further fields of the REQUEST, in place of the usual ones.

        Raises:
            RemoteError: The other node answered with an error, is gone, did not answer in time, or none
                offers the action.
        """
        self._must_not_block("call")
        options = {"target": target, "meta": meta, "headers": headers, "stream": stream, **fields}
        return self._wait(self.start_call(action, params, timeout=timeout, **options), timeout + 1.0)

    async def call_async(
        self, action: str, params: Any = None, *, timeout: float = 5.0, **options: Any
    ) -> Any:
        """`call`, for async code."""
        future = self.start_call(action, params, timeout=timeout, **options)
        return await self._wait_async(future, timeout + 1.0 if timeout else None)

    def start_call(
        self, action: str, params: Any = None, *, timeout: float = 5.0, **options: Any
    ) -> Future[Any]:
        """`call` without waiting."""
        future: Future[Any] = Future()

        def act() -> None:
            done = partial(_settle, future)
            self.core.calls.call(action, params, done, self._server.engine.now, timeout_s=timeout, **options)

        self._server.call(act)
        return future

    def _must_not_block(self, method: str) -> None:
        self._server._refuse_to_block(method)

    def _wait(self, future: Future[T], timeout: float) -> T:
        try:
            return future.result(timeout)
        except TimeoutError:
            raise self._no_answer(timeout) from None

    async def _wait_async(self, future: Future[T], timeout: float | None) -> T:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), timeout)
        except TimeoutError:
            raise self._no_answer(timeout or 0.0) from None

    def _no_answer(self, timeout: float) -> WaitTimeout:
        return WaitTimeout(f"no answer within {timeout:g} s:\n{self._server.journal_excerpt()}")

    def emit(self, event: str, data: Any = None, groups: Iterable[str] | None = None) -> None:
        """An event for one listener of each group, or of these groups."""
        self._act(lambda now: self.core.calls.emit(event, data, now, None if groups is None else [*groups]))

    def broadcast(self, event: str, data: Any = None, groups: Iterable[str] | None = None) -> None:
        """An event for all listeners, or those in these groups."""
        self._act(
            lambda now: self.core.calls.broadcast(event, data, now, None if groups is None else [*groups])
        )

    def ping(self, target: str, timeout: float = 2.0) -> Pong:
        """Ask a node whether it answers. `WaitTimeout` if it does not."""
        self._must_not_block("ping")
        return self._wait(self._start_ping(target), timeout)

    async def ping_async(self, target: str, timeout: float = 2.0) -> Pong:
        """`ping`, for async code."""
        return await self._wait_async(self._start_ping(target), timeout)

    def _start_ping(self, target: str) -> Future[Pong]:
        future: Future[Pong] = Future()
        self._act(lambda now: self.core.calls.ping(target, partial(_settle, future), now))
        return future

    # life

    def serve(self, services: Iterable[Service] | Mapping[str, Mapping[str, Action]]) -> None:
        """Offer other services from now on; everybody is told."""
        self._act(lambda now: self.core.serve(services_from(services), now))

    def stop(self) -> None:
        """Stop in good order: an INFO without services, then DISCONNECT."""
        self._act(self.core.stop)

    def kill(self) -> None:
        """Be gone without DISCONNECT: others notice by the missing heartbeats."""
        self._act(lambda now: self.core.vanish())

    def restart(self, *, same_instance: bool = False) -> None:
        """Join again, as a new instance unless told otherwise."""

        def act(now: float) -> None:
            if not same_instance:
                self.core.instance, self.core.seq = self.core.new_id(), self.core.options.seq
            self.core.join(now)

        self._act(act)

    def stop_heartbeats(self) -> None:
        """Go on, but send no heartbeats."""
        self._act(lambda now: self.core.silence())

    def resume_heartbeats(self) -> None:
        """Send heartbeats again, the first one after one interval."""
        self._act(self.core.resume_heartbeats)

    # packets by hand

    def heartbeat(self) -> None:
        """Send a heartbeat now."""
        self._act(self.core.beat)

    def discover(self, target: str = "") -> None:
        """Ask one node, or all, for their INFO."""
        self.send("DISCOVER", target)

    def send_info(self, target: str = "", **fields: Any) -> None:
        """Send this node's INFO, with other fields where given, to one node or to all."""
        self._act(lambda now: self._send(packet_from_info(self.core, fields), target, now))

    def send(self, command: str, target: str = "", **fields: Any) -> None:
        """Send a packet with these fields, such as ``send("RES", "node-1", id="7", success=True)``.

        `ver` and `sender` are added where they are not given.
        """
        packet = packet_from(BY_COMMAND[command], fields)
        self._act(lambda now: self._send(packet, target, now))

    def send_raw(self, command: str, payload: bytes, target: str = "") -> None:
        """Send bytes in place of a packet."""
        self._act(lambda now: self.core.carrier.send_raw(self.core, command, payload, target, now))

    def _send(self, packet: Packet, target: str, now: float) -> None:
        if target:
            self.core.send(packet, target, now)
        else:
            self.core.broadcast_all(packet, now)

    def _act(self, act: Callable[[float], Any]) -> None:
        self._server.call(lambda: act(self._server.engine.now))


def packet_from_info(core: FakeNode, fields: Mapping[str, Any]) -> Packet:
    """The node's INFO with other fields."""
    info = core.info()
    own = {name: getattr(info, name) for name in info.__struct_fields__ if name != "more"}
    return packet_from(type(info), {**own, **fields})


def _settle(future: Future[T], result: T, error: BaseException | None = None) -> None:
    """Pass an answer to whoever waits for it, unless nobody does any more."""
    if future.set_running_or_notify_cancel():
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
