"""Defects of the kit, which the clients of several protocols can have."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import TypeVar

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import Backoff, Callbacks, ClientError, Network, Wire

T = TypeVar("T")

STREAMS_OF_BYTES = ("rabbitmq-stream", "narconi", "mqtt")  #: libzmq connects for PZQ
ENCRYPTED = (*STREAMS_OF_BYTES, "moleculer")
RECONNECTING = (*ENCRYPTED, "nats")


@mutant("tls-falls-back-to-plain", tag="life-cycle", breaks=["X5"], aims=["NET-1.14"], protocols=ENCRYPTED)
class TlsFallsBackToPlain(Network):
    """Connects without TLS when TLS does not work."""

    async def dial(self, endpoint: str, make: Callable[[], asyncio.Protocol]) -> Wire:
        try:
            return await super().dial(endpoint, make)
        except (ssl.SSLError, ConnectionResetError):
            return await Network().dial(endpoint, make)


@mutant(
    "certificates-unchecked", tag="life-cycle", breaks=["X5"], aims=["NET-1.15"], protocols=STREAMS_OF_BYTES
)
class CertificatesUnchecked(Network):
    """Takes any certificate."""

    def tls_context(self, ca_file: str | None) -> ssl.SSLContext:
        context = super().tls_context(ca_file)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context


@mutant("reconnects-without-pause", tag="life-cycle", breaks=["X6"], protocols=RECONNECTING)
class ReconnectsWithoutPause(Backoff):
    """Tries to reconnect twenty times a second."""

    def delay(self) -> float:
        return 0.05


@mutant("reconnects-in-step", tag="life-cycle", breaks=["X6"], protocols=RECONNECTING)
class ReconnectsInStep(Backoff):
    """Waits equally long before a reconnect as every other client."""

    def delay(self) -> float:
        return self.grown_s


@mutant(
    "handshake-is-success",
    tag="life-cycle",
    breaks=["X6"],
    protocols=("rabbitmq-stream", "narconi", "mqtt", "nats", "redis"),
)
class HandshakeIsSuccess(Backoff):
    """Begins with the shortest pause again after each handshake, also where each connection ends at once."""

    async def retry(self, again: Callable[[], Awaitable[T]], is_final: Callable[[ClientError], bool]) -> T:
        made = await super().retry(again, is_final)
        self.reset()
        return made


@mutant("callback-errors-vanish", tag="life-cycle", breaks=["X10"], protocols=RECONNECTING)
class CallbackErrorsVanish(Callbacks):
    """Drops what a callback raises."""

    def failed(self, callback: str, error: Exception) -> None:
        pass

    def trouble(self, where: str, error: ClientError) -> None:
        try:
            self.on_error(where, error)
        except Exception:
            return
