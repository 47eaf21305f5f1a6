"""Adapters that lie: whatever they are asked, they say what a good client would say, and do not do it.

    python liars.py KIND PROTOCOL

They stand on the adapter of the correct client, most of whose ops they replace, so they declare all that it
declares and work in memory, on virtual time, as it does.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from typing import Any

from conformance.clients.adapter.kit import AdapterBase, Failure, run
from conformance.clients.reference.pzq.sockets import Connector
from conformance.clients.reference.registry import reference, without_sockets
from fakebrokers.pzq.memory import SocketType

Json = dict[str, Any]
KINDS: Mapping[str, SocketType] = {"receive": "DEALER", "send": "ROUTER", "monitor": "REQ"}
Lie = Callable[[AdapterBase, str, Json, int], Any]

#: Ops of the adapter itself, which every kind leaves as they are.
OWN = frozenset({"hello", "echo", "next", "cancel", "raise_next", "reset", "shutdown", "stats"})
#: What opens a session for real; on Narconi ``connect`` says nothing on the wire.
OPENING: Mapping[str, frozenset[str]] = {
    "rabbitmq-stream": frozenset({"connect", "state", "close", "abort"}),
    "narconi": frozenset({"connect", "state", "close", "abort", "narc.ensure_queue"}),
    "pzq": frozenset({"connect", "state", "close", "abort", "subscribe"}),
    "blazingmq": frozenset({"connect", "state", "close", "abort"}),
    "moleculer": frozenset({"connect", "state", "close", "abort"}),
}


def all_is_well(adapter: AdapterBase, op: str, args: Json, request_id: int) -> Any:
    """The answer of a client that has done what it was asked."""
    session = str(args.get("session"))
    if op == "connect":
        adapter.sessions[session] = None
    if op in ("close", "abort"):
        adapter.sessions.pop(session, None)
    if op == "publish" and not args.get("wait", True):
        adapter.loop.call_later(
            0.01, lambda: adapter.emit("outcome", id=request_id, outcome="acked", key=None)
        )
        return {"outcome": "sent", "key": None, "meta": {}}
    answers: Json = {
        "state": {"open": session in adapter.sessions, "pending": 0},
        "publish": {"outcome": "acked", "key": str(request_id), "meta": {}},
        "publish_many": {"outcomes": [{"outcome": "acked", "key": None}] * len(args.get("messages", []))},
        "narc.post": {"outcome": "acked", "key": None, "meta": {}},
        "narc.take": {"message": None},
        "rmqs.query_offset": {"offset": 0},
        "rmqs.query_sequence": {"sequence": 0},
        "rmqs.metadata": {
            "streams": [{"name": name, "exists": True, "code": 1} for name in args.get("targets", [])]
        },
        "pzq.monitor": {"values": {}},
    }
    return answers.get(op, {})


def nothing_works(adapter: AdapterBase, op: str, args: Json, request_id: int) -> Any:
    """The answer of a client that does not even try."""
    raise Failure("connection", "no", definite=True)


def nonsense(adapter: AdapterBase, op: str, args: Json, request_id: int) -> Any:
    """Answers of all types but the right one, in turn."""
    answers: list[Any] = [
        {"outcome": {"a": [1]}, "key": {"k": 1}, "meta": 7, "open": "yes", "outcomes": {}, "streams": [7]},
        [1, 2],
        {"outcome": "nacked", "open": None, "outcomes": [{}], "streams": "none", "offset": [], "message": 5},
        "acked",
        {
            "outcome": "sent",
            "outcomes": [{"outcome": "sent"}],
            "sequence": "x",
            "offset": "1e3",
            "values": [],
        },
        7.5,
    ]
    return answers[request_id % len(answers)]


def lying(
    base: type[AdapterBase], lie: Lie, true: frozenset[str] = frozenset(), *, calls: bool = False
) -> type:
    """A subclass of `base` that lies in all ops but those in `true`.

    Args:
        calls: ``connect`` opens a connection, and says nothing on it.
    """

    class Liar(base):  # type: ignore[misc, valid-type]
        adapter = library = "liar"

        def __init__(self) -> None:
            super().__init__()
            self.wires: list[Any] = []
            for name in self.ops:
                if name not in OWN | true:
                    self.ops[name] = self._lie(name)

        def _lie(self, name: str) -> Callable[..., Any]:
            async def answer(args: Json, request_id: int) -> Any:
                if calls and name == "connect":
                    await self._call(args["endpoints"])
                return lie(self, name, args, request_id)

            return answer

        async def _call(self, endpoints: Any) -> None:
            if isinstance(endpoints, dict):  # ZeroMQ: the sockets are there, and nothing is said on them
                connector = Connector(self.network({}))
                for role, endpoint in endpoints.items():
                    self.wires.append(connector.connect(endpoint, KINDS[role], lambda *_: None))
                return
            endpoint = endpoints[0].partition("://")[2].rstrip("/") or endpoints[0]
            self.wires.append(await self.network({}).dial(endpoint, asyncio.Protocol))

        async def clear(self) -> None:
            for wire in self.wires:
                wire.close()
            self.wires.clear()
            if "connect" in true:
                await super().clear()

    return Liar


def liar(kind: str, protocol: str, *, memory: bool) -> type[AdapterBase]:
    """The class of a liar."""
    base = reference(protocol)
    base = without_sockets(base) if memory else base
    opening = OPENING[protocol]
    made: Mapping[str, Callable[[], type[AdapterBase]]] = {
        "absent": lambda: lying(base, all_is_well),
        "caller": lambda: lying(base, all_is_well, calls=True),
        "greeter": lambda: lying(base, all_is_well, opening),
        "refuser": lambda: lying(base, nothing_works),
        "babbler": lambda: lying(base, nonsense, opening),
    }
    return made[kind]()


if __name__ == "__main__":
    run(liar(sys.argv[1], sys.argv[2], memory=False)())
