"""The calling side of a fake node: its requests, events and pings, and the answers to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET

from fakebrokers.core.timers import Timer, Timers
from fakebrokers.moleculer import packets as p
from fakebrokers.moleculer.services import MoleculerError, Stream, error_of
from fakebrokers.moleculer.speaker import Speaker
from fakebrokers.moleculer.streams import Incoming, cut, is_chunk

#: Gets the answer of a call: what came, or why it failed.
Done = Callable[[Any, BaseException | None], None]


class Pending:
    """A call without an answer.

    Attributes:
        target: The node that was asked; "" if the bus chose.
        incoming: What has come of it, if it is a stream.
    """

    def __init__(self, action: str, target: str, done: Done, timer: Timer) -> None:
        self.action = action
        self.target = target
        self.done = done
        self.timer = timer
        self.incoming: Incoming | None = None


class Calls:
    """The calls and pings of one node.

    Attributes:
        pending: Those without an answer, by id.
        orphans: Answers that no call waits for.
    """

    def __init__(self, node: Speaker, timers: Timers) -> None:
        self.pending: dict[str, Pending] = {}
        self.orphans: list[p.Response] = []
        self._node = node
        self._timers = timers
        self._pings: dict[str, list[Callable[[p.Pong], None]]] = {}

    # calls

    def call(
        self,
        action: str,
        params: Any,
        done: Done,
        now: float,
        *,
        target: str = "",
        timeout_s: float = 0.0,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, Any] | None = None,
        stream: Stream | None = None,
        **fields: Any,
    ) -> str:
        """Send a request; returns its id. `done` gets the data, a `Stream`, or the error.

        Args:
            target: The node to ask; "" for any that offers the action.
            timeout_s: 0 for none.
            fields: Further fields of the REQUEST, in place of the usual ones.
        """
        node = self._node
        balanced = node.options.disable_balancer and not target
        if not target and not balanced:
            target = node.peers.choose(action)
            if not target:
                done(None, _service_not_found(action, node.id))
                return ""
        number = str(fields.get("id") or node.new_id())
        timer = self._timers.new(lambda at: self._timed_out(number))
        self.pending[number] = Pending(action, target, done, timer)
        if timeout_s:
            timer.set(now + timeout_s)
        version = node.version_for(target)
        usual: dict[str, Any] = {
            "id": number,
            "action": action,
            "params": params,
            "meta": dict(meta or {}),
            "timeout": round(timeout_s * 1000),
            "level": 1,
            "tracing": None,
            "parentID": None,
            "requestID": number,
            "caller": None,
            "stream": stream is not None,
        }
        if version not in ("3", "4"):
            usual["headers"] = dict(headers or {})
        request = {**usual, **fields}
        for packet in [request] if stream is None else _upload(request, stream, version):
            self._send(packet, target, balanced, version, now)
        return number

    def _send(self, values: Mapping[str, Any], target: str, balanced: bool, version: str, now: float) -> None:
        node, packet = self._node, p.packet_from(p.Request, values)
        if balanced:
            node.carrier.send_balanced(node, node.signed(packet, version), str(values["action"]), now)
        else:
            node.send(packet, target, now, version)

    def response(self, packet: p.Response, now: float) -> None:
        """An answer came, or a chunk of one."""
        pending = self.pending.get(str(packet.id))
        if pending is None:
            self.orphans.append(packet)
            return
        if is_chunk(packet):
            pending.incoming = pending.incoming or Incoming()
            if pending.incoming.add(packet):
                self._settle(str(packet.id), pending.incoming.stream, None)
        elif packet.success is True:
            self._settle(str(packet.id), None if packet.data is UNSET else packet.data, None)
        else:
            error = packet.error if isinstance(packet.error, Mapping) else {}
            self._settle(str(packet.id), None, RemoteError(error))

    def _settle(self, number: str, result: Any, error: BaseException | None) -> None:
        pending = self.pending.pop(number, None)
        if pending is not None:
            pending.timer.drop()
            pending.done(result, error)

    def _timed_out(self, number: str) -> None:
        pending = self.pending[number]
        error = MoleculerError(
            f"Request is timed out when call '{pending.action}' action on '{pending.target}' node.",
            504,
            "REQUEST_TIMEOUT",
            {"action": pending.action, "nodeID": pending.target},
            name="RequestTimeoutError",
            retryable=True,
        )
        self._settle(number, None, RemoteError(error_of(error, self._node.id)))

    def reject(self, peer: str, now: float) -> None:
        """A node is gone: what it was asked fails."""
        for number, pending in tuple(self.pending.items()):
            if pending.target == peer:
                error = MoleculerError(
                    f"Request is rejected when call '{pending.action}' action on '{peer}' node.",
                    503,
                    "REQUEST_REJECTED",
                    {"action": pending.action, "nodeID": peer},
                    name="RequestRejectedError",
                    retryable=True,
                )
                self._settle(number, None, RemoteError(error_of(error, self._node.id)))

    # events

    def emit(self, event: str, data: Any, now: float, groups: list[str] | None = None) -> None:
        """An event for one listener of each group."""
        node = self._node
        if node.options.disable_balancer:
            wanted = groups or sorted({g for peer in node.peers for g in peer.groups_for(event)})
            number = node.new_id()
            for group in wanted:
                version = node.version_for("")
                packet = self._event(event, data, version, id=number, groups=[group], broadcast=False)
                node.carrier.send_balanced(node, node.signed(packet, version), f"{group}.{event}", now)
            return
        chosen: dict[str, list[str]] = {}
        there: dict[str, list[str]] = {}
        for peer in node.peers:
            for group in peer.groups_for(event) if peer.available else ():
                if groups is None or group in groups:
                    there.setdefault(group, []).append(peer.id)
        for group, peers in there.items():
            chosen.setdefault(peers[node.random.randrange(len(peers))], []).append(group)
        for target, own in chosen.items():
            version = node.version_for(target)
            node.send(self._event(event, data, version, groups=own, broadcast=False), target, now, version)

    def broadcast(self, event: str, data: Any, now: float, groups: list[str] | None = None) -> None:
        """An event for all listeners."""
        node = self._node
        for peer in list(node.peers):
            own = peer.groups_for(event) if peer.available else []
            if own and (groups is None or set(own) & set(groups)):
                version = node.version_for(peer.id)
                given = UNSET if groups is None else groups
                node.send(
                    self._event(event, data, version, groups=given, broadcast=True), peer.id, now, version
                )

    def _event(self, event: str, data: Any, version: str, **fields: Any) -> p.Packet:
        usual = {
            "id": self._node.new_id(),
            "event": event,
            "data": data,
            "meta": {},
            "level": 1,
            "tracing": None,
            "parentID": None,
            "requestID": self._node.new_id(),
            "caller": None,
            "needAck": None,
        }
        values = {**usual, **fields}
        return p.packet_from(p.Event, {name: value for name, value in values.items() if value is not UNSET})

    # pings

    def ping(self, target: str, done: Callable[[p.Pong], None], now: float) -> None:
        """Ask a node whether it answers. Any PONG of it will do, as with real nodes."""
        self._pings.setdefault(target, []).append(done)
        packet = p.Ping(time=round(self._node.wall(now) * 1000), id=self._node.new_id())
        self._node.send(packet, target, now)

    def pong(self, packet: p.Pong, now: float) -> None:
        """An answer to a ping came."""
        for done in self._pings.pop(str(packet.sender), []):
            done(packet)


class RemoteError(Exception):
    """A call failed. `error` has what the other node said, as on the wire."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(f"{error.get('name', 'Error')}: {error.get('message', '')}")
        self.error = dict(error)


def _service_not_found(action: str, node: str) -> RemoteError:
    error = MoleculerError(
        f"Service '{action}' is not found.",
        404,
        "SERVICE_NOT_FOUND",
        {"action": action},
        name="ServiceNotFoundError",
        retryable=True,
    )
    return RemoteError(error_of(error, node))


def _upload(request: dict[str, Any], stream: Stream, version: str) -> list[dict[str, Any]]:
    """The packets of an upload. In protocol 4 its parameters are the stream itself."""
    old = version in ("3", "4")
    flags = {"$streamObjectMode": True} if stream.object_mode else {}
    where = "meta" if old else "headers"
    opening = {**request, where: {**request[where], **flags}, "seq": 0}
    if old:
        opening["params"] = None
    later = {**request, "meta": {}, where: dict(flags)}
    found = [opening]
    for chunk in cut(stream.chunks):
        found.append({**later, "params": chunk, "seq": len(found)})
    end = {**later, "params": None, "stream": False, "seq": len(found)}
    if stream.error is not None:
        end[where] = {**flags, "$streamError": stream.error}
    return [*found, end]
