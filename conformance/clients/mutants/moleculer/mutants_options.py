"""Defects in what a node can be given besides: beats, errors of every kind, ops in callbacks, an abort."""

from __future__ import annotations

import dataclasses
from typing import Any

from conformance.clients.adapter import kit
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.context import ActionError, Context
from conformance.clients.reference.moleculer.ops import MoleculerOps
from conformance.clients.reference.moleculer.pings import Pings
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
