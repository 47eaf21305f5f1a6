"""What correct clients of Moleculer do in their own manner: parts in place of the reference client's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.moleculer.caller import Caller, Pending
from conformance.clients.reference.moleculer.post import Post

#: Members that a packet may leave out; nodes read null like nothing (docs/protocols/moleculer.md, 4.9).
OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "REQ": ("tracing", "parentID", "caller", "stream", "seq"),
    "RES": ("stream", "seq"),
    "EVENT": ("groups", "tracing", "parentID", "caller", "stream", "seq", "needAck"),
    "HEARTBEAT": ("seq", "instanceID"),
}


class SaysNull(Post):
    """Writes what it has nothing for as null, as a library with one structure for all its packets does."""

    def written(self, command: str, packet: Mapping[str, Any]) -> bytes:
        nothing = dict.fromkeys(OPTIONAL.get(command.removesuffix("B"), ()))
        stands = {name: value for name, value in packet.items() if not (name == "stream" and value is False)}
        is_stream = packet.get("stream") is not None and packet.get("seq") is not None
        return super().written(command, {**nothing, **(packet if is_stream else stands)})


class Nameless(Post):
    """Does not tell the name and the addresses of its machine; nodes take an INFO without them (4.2)."""

    def written(self, command: str, packet: Mapping[str, Any]) -> bytes:
        if command != "INFO" or self._settings.serializer != "JSON":  # a schema has no null for a text
            return super().written(command, packet)
        kept = {name: value for name, value in packet.items() if name != "ipList"}
        return super().written(command, {**kept, "hostname": None})


class GuessesSuccess(Caller):
    """Takes an answer that does not say whether it is one with success for one."""

    def settle(self, pending: Pending, packet: dict[str, Any]) -> None:
        super().settle(pending, {"success": True, **packet})


class CannotReadError(Caller):
    """An error that is no object is an exception where it is read: the call ends with that."""

    def settle(self, pending: Pending, packet: dict[str, Any]) -> None:
        if packet.get("success") is False and not isinstance(packet.get("error"), dict):
            pending.fail(ClientError("internal", "AttributeError: no member 'name'"))
        else:
            super().settle(pending, packet)


class WantsAll(Post):
    """Reads an event into a structure whose members have to be there, as a library with types does (4.10)."""

    REQUIRED = ("id", "event", "data", "broadcast", "meta", "level", "requestID")

    def parsed(self, command: str, payload: bytes) -> dict[str, Any]:
        packet = super().parsed(command, payload)
        missing = [name for name in self.REQUIRED if name not in packet]
        if command == "EVENT" and missing:
            raise ClientError("protocol", f"missing field {missing[0]}")
        return packet


class Undeclared(AdapterBase):
    """Says nothing of what it may do besides: its author has not read of that."""

    contract: Mapping[str, bool] = {}


class LacksArguments(AdapterBase):
    """Its calls take no meta, and its listeners no group."""

    lacks = "mol.call.meta mol.listen.group"


class StartsBehind(Undeclared):
    """Its library starts a node and tells nobody when it is connected, or that it is not."""

    async def _perform(self, request: dict[str, Any]) -> Any:
        if request["op"] != "connect":
            return await super()._perform(request)
        starting = asyncio.get_running_loop().create_task(super()._perform(request))
        starting.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        await asyncio.sleep(0)
        return {}


class ShowsNoRegistry(AdapterBase):
    """Its library does not tell its user which nodes it knows."""

    def __init__(self) -> None:
        super().__init__()
        del self.ops["mol.registry"]


WAYS: Mapping[str, tuple[tuple[type, ...], type[AdapterBase] | None]] = {
    "says-null": ((SaysNull,), None),
    "nameless": ((Nameless,), None),
    "cannot-read-error": ((CannotReadError,), None),
    "wants-all": ((WantsAll,), None),
    "lacks-arguments": ((), LacksArguments),
    "starts-behind": ((), StartsBehind),
    "shows-no-registry": ((), ShowsNoRegistry),
    "guesses-success": ((GuessesSuccess,), Undeclared),
}
