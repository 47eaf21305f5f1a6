"""Defects in heartbeats and timers (catalogue sections RMQS-1 and RMQS-5)."""

from __future__ import annotations

import math
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.handshake import Handshake
from fakebrokers.rabbitmq_stream.frames import Heartbeat


@mutant("no-timers", tag="life-cycle", breaks=["R3", "R18", "X3", "X8"])
class NoTimers(Connection):
    """Sets no timers: neither for the server's silence nor for answers."""

    def next_deadline(self) -> float | None:
        return None


@mutant("beats-by-its-own-value", tag="life-cycle", breaks=["R16", "R18"])
class BeatsByItsOwnValue(Connection):
    """Agrees to the server's shorter heartbeat, but goes on with its own."""

    def heartbeat_due(self) -> float | None:
        return self.last_sent + self.settings.heartbeat_s / 2 if self.is_beating() else None


@mutant("zero-heartbeat-storm", tag="life-cycle", breaks=["R16", "R18"])
class ZeroHeartbeatStorm(Connection):
    """A heartbeat of 0 s is sent as often as the timer goes."""

    def heartbeat_due(self) -> float | None:
        if self.state == "open" and self.heartbeat_s == 0:
            return self.last_sent + 0.1
        return super().heartbeat_due()


@mutant("sends-no-heartbeats", tag="life-cycle", breaks=["R16", "R18", "X3"])
class SendsNoHeartbeats(Connection):
    """Never sends a Heartbeat."""

    def heartbeat_due(self) -> float | None:
        return None


@mutant("handshake-counts-as-silence", tag="life-cycle", breaks=["R15", "R18"])
class HandshakeCountsAsSilence(Connection):
    """Demands a sign of life each second as soon as the heartbeat is agreed, even before Open is answered."""

    def silence_limit(self) -> float | None:
        if self.state == "new" and self.heartbeat_s:
            return self.last_received + self.heartbeat_s
        return super().silence_limit()


@mutant("heartbeat-before-login", tag="wire", breaks=["R15", "R18"])
class HeartbeatBeforeLogin(Handshake):
    """Sends a Heartbeat before the server's Tune."""

    def mechanisms_known(self, answer: Any) -> None:
        self.connection.send(Heartbeat())
        super().mechanisms_known(answer)


@mutant("silence-unnoticed", tag="life-cycle", breaks=["R18", "X3"])
class SilenceUnnoticed(Connection):
    """Never misses the server's heartbeats."""

    def silence_limit(self) -> float | None:
        return None


@mutant("impatient", tag="life-cycle", breaks=["R18", "X3"])
class StreamImpatient(Connection):
    """Gives a connection up after little more than one heartbeat without a byte."""

    def silence_limit(self) -> float | None:
        return self.last_received + 1.1 * self.heartbeat_s if self.is_beating() else None


@mutant("only-heartbeats-count", tag="life-cycle", breaks=["R18", "X3"])
class OnlyHeartbeatsCount(Connection):
    """Takes nothing but a Heartbeat for a sign of life."""

    last_beat = -math.inf

    def heartbeat(self, frame: Heartbeat) -> None:
        self.last_beat = self.now

    def opened(self) -> None:
        self.last_beat = self.now
        super().opened()

    def silence_limit(self) -> float | None:
        return self.last_beat + 2 * self.heartbeat_s if self.is_beating() else None


@mutant("beats-only-in-silence", tag="life-cycle", breaks=["R16", "R18"])
class BeatsOnlyInSilence(Connection):
    """Waits with its heartbeat as long as anything comes in."""

    def heartbeat_due(self) -> float | None:
        last = max(self.last_sent, self.last_received)
        return last + self.heartbeat_s / 2 if self.is_beating() else None
