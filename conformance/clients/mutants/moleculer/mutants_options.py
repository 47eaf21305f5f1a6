"""Defects in what a node can be given besides: beats, errors of every kind, ops in callbacks, an abort."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from conformance.clients.adapter import kit
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import Runtime
from conformance.clients.reference.moleculer.bus import Bus
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.codecs import NatsCodec, RedisCodec
from conformance.clients.reference.moleculer.context import ActionError, Context
from conformance.clients.reference.moleculer.ops import MoleculerOps
from conformance.clients.reference.moleculer.pings import Pings
from conformance.clients.reference.moleculer.post import Post
from conformance.clients.reference.moleculer.serving import Server
from conformance.clients.reference.moleculer.settings import Settings


@mutant("falsy-error-data-are-lost", tag="data", breaks=["M8"])
class FalsyErrorDataAreLost(Server):
    """Leaves out the data of an error where they are false: 0, an empty text."""

    def refuse(self, packet: dict[str, Any], context: Context, error: Exception) -> None:
        if isinstance(error, ActionError):
            error.members["data"] = error.members.get("data") or None
        super().refuse(packet, context, error)


@mutant("missed-after-three-beats", tag="life-cycle", breaks=["M5"])
class MissedAfterThreeBeats(MoleculerClient):
    """Misses a node after three of its own heartbeats, whatever patience the application has ordered."""

    def __init__(self, runtime: Runtime, settings: Settings) -> None:
        patience_s = 3 * settings.heartbeat_s
        super().__init__(runtime, dataclasses.replace(settings, heartbeat_timeout_s=patience_s))


@mutant("unserve-waits-for-listeners", tag="life-cycle", breaks=["X10"])
class UnserveWaitsForListeners(MoleculerOps):
    """A service ends when all listeners have ended, the one that asks for it too."""

    @kit.op("mol.unserve")
    async def unserve(self, session: str, service: str) -> None:
        for feed in tuple(self.session(session).runtime.feeds):
            await feed.drained()
        await super().unserve(session, service)


@mutant("pings-outlive-the-node", tag="life-cycle", breaks=["X1"])
class PingsOutliveTheNode(Pings):
    """Pings that are under way when the node ends wait until their time is over."""

    def end(self) -> None:
        pass


@mutant("events-of-any-size", tag="life-cycle", breaks=["M7"])
class EventsOfAnySize(Post):
    """Looks at the size of calls and answers only: an event is written, however large it is."""

    def send(self, command: str, rest: str, packet: Mapping[str, Any]) -> None:
        if self.bus is None or not command.startswith("EVENT") or not isinstance(self.bus, Bus):
            super().send(command, rest, packet)
        else:
            self.bus.write(self.bus.codec.publish(self.topic(command, rest), self.written(command, packet)))


@mutant("leaves-one-topic-each-time", tag="life-cycle", breaks=["M2"])
class LeavesOneTopicEachTime(NatsCodec):
    """Where the server chooses who answers, it ends its first subscription alone when services change."""

    def unsubscribe_balanced(self) -> bytes:
        first, _, _ = super().unsubscribe_balanced().partition(b"\r\n")
        return first + b"\r\n" if first else b""


@mutant("topics-of-several-words", tag="wire", breaks=["M6"])
class TopicsOfSeveralWords(NatsCodec):
    """Writes a topic as it is, also where it is further words, or lines."""

    def check(self, *topics: str) -> None:
        """Nothing is looked at."""


@mutant("channels-are-latin", tag="wire", breaks=["M1"])
class ChannelsAreLatin(RedisCodec):
    """Writes the names of channels in Latin-1."""

    def subscribe(self, topic: str, queue: str = "") -> bytes:
        return self._command(b"SUBSCRIBE", topic.encode("latin-1", "replace"))
