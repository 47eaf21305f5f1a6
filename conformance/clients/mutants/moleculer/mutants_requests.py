"""Nodes that call, or answer, with a defect."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.moleculer.bus import Bus
from conformance.clients.reference.moleculer.caller import Caller, Pending
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.context import ActionError, Context
from conformance.clients.reference.moleculer.registry import Registry
from conformance.clients.reference.moleculer.serving import Handler, Server, Service
from conformance.clients.reference.moleculer.streams import Incoming, remote

Json = dict[str, Any]


@mutant("timeout-in-seconds", tag="wire", breaks=["M9", "M10"])
class TimeoutInSeconds(Caller):
    """Sends the callee its time-out in seconds."""

    def request(self, *args: Any) -> Json:
        packet = super().request(*args)
        return {**packet, "timeout": packet["timeout"] / 1000}


@mutant("answers-without-data", tag="data", breaks=["M5"])
class AnswersWithoutData(Server):
    """Leaves the data out of its answers."""

    def accept(self, packet: Json, context: Context, data: Any) -> None:
        super().accept(packet, context, None)


@mutant("errors-without-code", tag="wording", breaks=["M5"])
class ErrorsWithoutCode(Caller):
    """Forgets the code of an error."""

    def settle(self, pending: Pending, packet: Json) -> None:
        if packet.get("success") is False:
            error = remote(packet.get("error"))
            pending.fail(ClientError("refused", error.args[0] if error.args else ""))
            return
        super().settle(pending, packet)


@mutant("errors-unanswered", tag="data", breaks=["M5"])
class ErrorsUnanswered(Server):
    """Says nothing when an action fails."""

    def refuse(self, packet: Json, context: Context, error: Exception) -> None:
        """Nothing is said."""


@mutant("unknown-actions-unanswered", tag="data", breaks=["M5"])
class UnknownActionsUnanswered(Server):
    """Says nothing when it does not have the action."""

    async def answer(self, packet: Json, stream: Incoming | None) -> None:
        if self.find(packet.get("action")) is not None:
            await super().answer(packet, stream)


@mutant("first-come-first-served", tag="data", breaks=["M10", "X8"])
class FirstComeFirstServed(Caller):
    """Takes every answer for that of its oldest call."""

    def waiting(self, id: str) -> Pending | None:
        oldest = next(iter(self.pending), None)
        return None if oldest is None else self.pending[oldest]

    def settle(self, pending: Pending, packet: Json) -> None:
        for id, one in list(self.pending.items()):
            if one is pending:
                del self.pending[id]
        super().settle(pending, packet)


@mutant("waits-twice-as-long", tag="life-cycle", breaks=["M10"])
class WaitsTwiceAsLong(Caller):
    """Ends a call at twice its time-out."""

    async def answer_of(self, pending: Pending, limit_s: float) -> Any:
        return await super().answer_of(pending, 2 * limit_s)


@mutant("demands-params", tag="wire", breaks=["M9"])
class DemandsParams(Server):
    """Drops a request without parameters."""

    def request(self, packet: Json) -> None:
        if packet["params"] is not None:
            super().request(packet)


@mutant("forgets-the-answer-s-meta", tag="data", breaks=["M5"])
class ForgetsTheAnswersMeta(Caller):
    """Does not give its user the meta of an answer."""

    def merge(self, pending: Pending, packet: Json) -> None:
        pending.answered_by = packet["sender"]


@mutant("always-the-first-node", tag="data", breaks=["M2", "M6", "M8"])
class AlwaysTheFirstNode(Registry):
    """Asks the same node again and again."""

    def next_of(self, what: str, ids: list[str]) -> str | None:
        return ids[0] if ids else None


@mutant("chooses-nodes-itself", tag="wire", breaks=["M14"])
class ChoosesNodesItself(Caller):
    """Chooses a node although the bus is to balance."""

    def route(self, action: str, node: str) -> tuple[str, str]:
        return super().route(action, node or self._registry.choose(action) or "")


@mutant("waits-for-the-bus", tag="life-cycle", breaks=["M5", "M10"])
class WaitsForTheBus(Caller):
    """Holds a call back until there is a connection again, however long that takes."""

    async def call(self, *args: Any, **options: Any) -> tuple[Any, Pending]:
        while self._post.bus is None or not self._post.bus.is_open:
            await asyncio.sleep(0.05)
        return await super().call(*args, **options)


@mutant("forgets-calls-at-a-loss", tag="data", breaks=["M10"])
class ForgetsCallsAtALoss(MoleculerClient):
    """Does not know its calls any more when the connection was lost."""

    def lost_bus(self, reason: str) -> None:
        self.caller.pending.clear()
        super().lost_bus(reason)


@mutant("success-unless-denied", tag="data", breaks=["M5", "M9"])
class SuccessUnlessDenied(Caller):
    """Takes an answer without a success for a good one."""

    def settle(self, pending: Pending, packet: Json) -> None:
        super().settle(pending, {**packet, "success": packet.get("success") is not False})


@mutant("deadline-without-its-code", tag="wording", breaks=["M10"])
class DeadlineWithoutItsCode(Server):
    """Answers with code 500 when the caller's time is up."""

    async def result_of(self, context: Context, handler: Handler) -> Any:
        try:
            return await super().result_of(context, handler)
        except ActionError as error:
            raise ActionError(str(error), 500) from None


@mutant("asks-anybody", tag="data", breaks=["M2", "M4"])
class AsksAnybody(Caller):
    """Asks some node for an action that no node offers."""

    def route(self, action: str, node: str) -> tuple[str, str]:
        try:
            return super().route(action, node)
        except ClientError:
            others = [peer.id for peer in self._registry if peer.id != self._registry.own]
            if not others:
                raise
            return "REQ", others[0]


@mutant("deaf-to-the-balancer", tag="wire", breaks=["M14"])
class DeafToTheBalancer(MoleculerClient):
    """Does not subscribe to what the bus balances."""

    def balanced(self) -> list[tuple[str, str]]:
        return []


@mutant("ignores-max-payload", tag="wire", breaks=["M13"])
class IgnoresMaxPayload(Bus):
    """Sends messages that are larger than the server takes."""

    def publish(self, topic: str, payload: bytes) -> None:
        self.write(self.codec.publish(topic, payload))


@mutant("no-time-out-is-the-default", tag="life-cycle", breaks=["M9"])
class NoTimeOutIsTheDefault(Caller):
    """Takes a time-out of 0, which means none, for one that was not given."""

    async def call(
        self, action: str, params: Any = None, *, timeout: float | None = None, **more: Any
    ) -> tuple[Any, Pending]:
        return await super().call(action, params, timeout=timeout or None, **more)


@mutant("large-answers-are-dropped", tag="data", breaks=["M5"])
class LargeAnswersAreDropped(Server):
    """Sends no answer at all where the one that it has is larger than the server takes."""

    def reply(self, packet: Json, fields: Json) -> None:
        try:
            self._post.send("RES", packet["sender"], {"id": packet["id"], **fields})
        except ClientError as error:
            self._runtime.callbacks.trouble("write", error)


@mutant("names-end-at-the-first-dot", tag="data", breaks=["M5"])
class NamesEndAtTheFirstDot(Server):
    """Finds no action of a service whose name has a dot."""

    def find(self, action: Any) -> tuple[Service, Handler] | None:
        return None if isinstance(action, str) and action.count(".") > 1 else super().find(action)


@mutant("meta-of-all-callers", tag="data", breaks=["M5"])
class MetaOfAllCallers(Server):
    """Has one meta for all requests: an action gets what earlier callers have sent along."""

    collected: dict[str, Any]

    def context(self, packet: Json, service: Service, stream: Incoming | None) -> Context:
        found = super().context(packet, service, stream)
        if not hasattr(self, "collected"):
            self.collected = {}
        self.collected.update(found.meta)
        found.meta = self.collected
        return found


@mutant("falsy-params-are-none", tag="data", breaks=["M5"])
class FalsyParamsAreNone(Caller):
    """Sends an empty object for 0, false and all that is empty."""

    def request(self, *args: Any) -> Json:
        packet = super().request(*args)
        return packet if packet["params"] else {**packet, "params": {}}


@mutant("errors-are-called-by-their-names", tag="wording", breaks=["M5"])
class ErrorsAreCalledByTheirNames(Caller):
    """Reports the name of an error in place of its message."""

    def settle(self, pending: Pending, packet: Json) -> None:
        error = packet.get("error")
        if isinstance(error, dict):
            packet = {**packet, "error": {**error, "message": error.get("name")}}
        super().settle(pending, packet)


@mutant("names-are-types", tag="wording", breaks=["M5"])
class NamesAreTypes(Caller):
    """Takes the name of an error for its type."""

    def settle(self, pending: Pending, packet: Json) -> None:
        error = packet.get("error")
        if isinstance(error, dict):
            packet = {**packet, "error": {**error, "type": error.get("name")}}
        super().settle(pending, packet)


@mutant("services-have-both", tag="life-cycle", breaks=["M4"])
class ServicesHaveBoth(Registry):
    """Takes it for granted that a service has events."""

    def listeners(self, event: str) -> dict[str, list[str]]:
        for peer in self:
            for service in peer.services:
                service["events"].items()
        return super().listeners(event)
