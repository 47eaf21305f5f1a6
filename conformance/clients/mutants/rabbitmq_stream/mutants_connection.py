"""Defects in connecting, logging in and tuning (catalogue sections RMQS-1, parts of RMQS-5)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from conformance.clients.mutants.rabbitmq_stream.deaf import DeafConnection
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.handshake import Handshake
from conformance.clients.reference.rabbitmq_stream.link import Link
from conformance.clients.reference.rabbitmq_stream.links import Links
from conformance.clients.reference.rabbitmq_stream.locator import Locator
from conformance.clients.reference.rabbitmq_stream.requests import Requests
from fakebrokers.core.frames import Frame
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import OpenResponse, Publish, StreamFrame


@mutant("handshake-repeats-its-id", tag="wire", breaks=["R3", "R15"])
class HandshakeRepeatsItsId(Requests):
    """All requests of the handshake have the same correlation id."""

    def take_correlation(self) -> int:
        return 1 if self.connection.state == "new" else super().take_correlation()


@mutant("one-frame-per-read", tag="wire", breaks=["R1", "X1"])
class OneFramePerRead(Connection):
    """Takes what one read gives for one frame, and loses what else is in it."""

    def receive(self, data: bytes, now: float) -> None:
        size = 4 + int.from_bytes(data[:4])
        super().receive(data if self.codec.partial else data[:size], now)


@mutant("whole-frames-per-read", tag="wire", breaks=["R1", "X1"])
class WholeFramesPerRead(Connection):
    """Loses the part of a frame that a read ends with."""

    def receive(self, data: bytes, now: float) -> None:
        super().receive(data, now)
        if self.codec.partial and self.state != "ended":
            limit = self.codec.max_frame
            self.codec = type(self.codec)("client", limit)


@mutant("login-refusal-ignored", tag="life-cycle", breaks=["R5", "R15"])
class LoginRefusalIgnored(Handshake):
    """Knows only code 8 as a refused login, and waits for the Tune after every other code."""

    def authenticated(self, answer: Any) -> None:
        if answer.code in (Code.OK, Code.AUTHENTICATION_FAILURE, Code.SASL_CHALLENGE):
            super().authenticated(answer)


class _EndUnnoticed(Connection):
    """Notices the end of an open connection only."""

    def lost(self, now: float, problem: str) -> None:
        if self.state == "open":
            super().lost(now, problem)


@mutant("handshake-refusal-waits", tag="life-cycle", breaks=["R5", "R15"], also=[_EndUnnoticed])
class HandshakeRefusalWaits(Handshake):
    """Notices neither a refusal in the handshake nor the end of the connection after it."""

    def is_ok(self, answer: Any, kind: str = "refused") -> bool:
        return bool(answer.code == Code.OK)


@mutant("handshake-codes-unread", tag="life-cycle", breaks=["R5"])
class HandshakeCodesUnread(Handshake):
    """Takes PeerProperties for accepted, whatever the code."""

    def introduced(self, answer: Any) -> None:
        super().introduced(type(answer)(answer.correlation_id, Code.OK, answer.properties))


@mutant("login-repeated", tag="life-cycle", breaks=["R5", "R15"])
class LoginRepeated(Links):
    """Tries a refused login again and again."""

    async def connect_control(self, deadline: float) -> None:
        for _ in range(2):
            try:
                await super().connect_control(deadline)
            except ClientError as error:
                if error.kind != "auth":
                    raise
            else:
                return
        await super().connect_control(deadline)


@mutant("refused-login-keeps-socket", tag="life-cycle", breaks=["R5", "R15"])
class RefusedLoginKeepsSocket(Link):
    """Leaves the socket open after the server has refused the handshake."""

    kept: list[Any] = []  # noqa: RUF012 - a leak

    def connection_ended(self, error: ClientError) -> None:
        if self.opened_at is None and error.code is not None:
            self.kept.append(self._wire)
            self._wire = None
        super().connection_ended(error)

    def eof_received(self) -> bool:
        return True


@mutant("credentials-regardless", tag="life-cycle", breaks=["R15"], also=[_EndUnnoticed])
class CredentialsRegardless(Handshake):
    """Sends the credentials for a mechanism that is not offered, and waits if they are refused."""

    def mechanisms_known(self, answer: Any) -> None:
        self.authenticate()

    def authenticated(self, answer: Any) -> None:
        if answer.code != Code.SASL_MECHANISM_NOT_SUPPORTED:
            super().authenticated(answer)


@mutant("challenge-ignored", tag="life-cycle", breaks=["R15"])
class ChallengeIgnored(Handshake):
    """Does nothing when the server asks for another round of SASL."""

    def authenticated(self, answer: Any) -> None:
        if answer.code != Code.SASL_CHALLENGE:
            super().authenticated(answer)


@mutant("refusal-looks-like-loss", tag="wording", breaks=["R5", "R15"])
class RefusalLooksLikeLoss(Handshake):
    """Reports a refused login or virtual host as a lost connection, without the code."""

    def is_ok(self, answer: Any, kind: str = "refused") -> bool:
        if answer.code != Code.OK:
            self.connection.end(ClientError("connection", "connection lost"))
        return bool(answer.code == Code.OK)


@mutant("endless-connect", tag="life-cycle", breaks=["R15", "X8"], aims=["NET-2.12"])
class EndlessConnect(StreamClient):
    """Connecting has no time-out."""

    async def connect(self, timeout: float | None = None) -> None:
        await super().connect(10_000.0)


@mutant("fin-in-handshake-unnoticed", tag="life-cycle", breaks=["R15", "X2", "X5"])
class FinInHandshakeUnnoticed(Connection):
    """A connection that ends before it is open is noticed by the time-out only."""

    def lost(self, now: float, problem: str) -> None:
        if self.state != "new":
            super().lost(now, problem)


@mutant("zero-frame-max-is-small", tag="wire", breaks=["R16"])
class ZeroFrameMaxIsSmall(Handshake):
    """Takes a frame maximum of 0 for the smallest one instead of none."""

    def agree_frame_max(self, offered: int) -> int:
        return super().agree_frame_max(offered) if offered else 4096


@mutant("version-expected", tag="life-cycle", breaks=["R15", "R20"])
class VersionExpected(Handshake):
    """Waits forever if the server does not say its version."""

    def entered(self, answer: Any) -> None:
        if "version" in self.connection.server_properties:
            super().entered(answer)


@mutant("few-properties", tag="wire", breaks=["R15", "R20", "X5"])
class FewProperties(DeafConnection):
    """Its reader ends when a map has more entries than its table."""

    def handle(self, frame: Frame) -> None:
        if len(getattr(frame, "properties", None) or ()) > 16:
            self.go_deaf()
        super().handle(frame)


@mutant("trailing-bytes-stop-the-reader", tag="wire", breaks=["R1", "R20"])
class TrailingBytesStopTheReader(DeafConnection):
    """Its reader ends when an answer is longer than expected."""

    def receive(self, data: bytes, now: float) -> None:
        for frame, size in type(self.codec)("client", 0).feed(data):
            if isinstance(frame, OpenResponse) and size != len(self.codec.encode(frame)):
                self.go_deaf()
        super().receive(data, now)


@mutant("open-properties-expected", tag="wire", breaks=["R15"], also=[DeafConnection])
class OpenPropertiesExpected(Handshake):
    """Its reader ends when the answer to Open has no properties."""

    def entered(self, answer: Any) -> None:
        if answer.properties is None:
            connection: Any = self.connection
            connection.go_deaf()
        else:
            super().entered(answer)


@mutant("hammers-an-address", tag="life-cycle", breaks=["R13", "X6"])
class HammersAnAddress(Locator):
    """Tries the advertised address again and again, without a pause."""

    async def dial(self, address: str, deadline: float) -> Link:
        for _ in range(40):
            try:
                return await self.links.open(address, deadline)
            except ClientError:
                continue
        return await super().dial(address, deadline)


class _AlwaysExchangesVersions(Handshake):
    """Sends ExchangeCommandVersions to servers that do not know it; RMQS-1.21 allows that by itself."""

    def knows_versions(self) -> bool:
        return True


@mutant("insists-on-versions", tag="life-cycle", breaks=["R15", "R20"], also=[_AlwaysExchangesVersions])
class InsistsOnVersions(Links):
    """Connects again and again to a server that does not know ExchangeCommandVersions."""

    async def connect_control(self, deadline: float) -> None:
        while True:
            try:
                return await super().connect_control(deadline)
            except ClientError as error:
                if error.code != Code.UNKNOWN_FRAME:
                    raise
                await asyncio.sleep(0.1)


@mutant("publishes-version-2", tag="wire", breaks=["R7", "R20"])
class PublishesVersion2(Connection):
    """Sends Publish in version 2, without asking whether the server knows it."""

    def send(self, frame: StreamFrame) -> None:
        if isinstance(frame, Publish) and frame.version == 1 and not frame.batches:
            frame = msgspec.structs.replace(frame, version=2, filter_values=(None,) * frame.count)
        super().send(frame)


@mutant("password-in-errors", tag="wording", breaks=["R2"])
class PasswordInErrors(Handshake):
    """Shows the whole login in the error of one that was refused, with the password."""

    def is_ok(self, answer: Any, kind: str = "refused") -> bool:
        if answer.code != Code.OK:
            login = f"{self.settings.user}:{self.settings.password}@{self.settings.vhost}"
            text = f"{type(answer).__name__} for {login} with code {answer.code}"
            self.connection.end(ClientError(kind, text, code=answer.code))
        return bool(answer.code == Code.OK)


@mutant("cancelled-connect-goes-on", tag="life-cycle", breaks=["X9"])
class CancelledConnectGoesOn(Link):
    """Does not end its connection where the application cancels the connect."""

    async def open(self, deadline: float) -> None:
        opening = asyncio.ensure_future(super().open(deadline))
        opening.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(opening)
