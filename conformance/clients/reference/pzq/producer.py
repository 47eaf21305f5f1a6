"""Sends messages and keeps the ids of those that wait for their acknowledgement (P1, P3, P4)."""

from __future__ import annotations

import asyncio
import secrets
from typing import ClassVar, NamedTuple

from conformance.clients.reference.kit import ClientError, Runtime
from conformance.clients.reference.pzq.sockets import Connector, Parts
from fakebrokers.pzq.memory import SocketType

STORED = b"1"


class Answer(NamedTuple):
    """What the broker says of a message: ``[id][status][headers...][][texts...]``."""

    id: bytes
    status: bytes
    texts: Parts


class Producer:
    """One DEALER socket.

    A message without an answer is sent once more, under its id, when half of the time is over. What was
    never answered is unknown: the broker may have stored it.
    """

    kind: ClassVar[SocketType] = "DEALER"

    def __init__(self, runtime: Runtime, connector: Connector, endpoint: str) -> None:
        self.runtime = runtime
        self.connector = connector
        self.endpoint = endpoint
        self.pending: dict[bytes, asyncio.Future[Answer]] = {}
        self.buffered_bytes = 0  #: bodies of those that wait
        self._prefix = secrets.token_bytes(8)
        self._number = 0
        self.socket = connector.connect(endpoint, self.kind, self.receive)

    def new_id(self) -> bytes:
        """An id that no other message has."""
        self._number += 1
        return self._prefix + self._number.to_bytes(8, "big")

    def layout(self, id: bytes, body: Parts) -> Parts:
        """A message as the socket takes it."""
        return (id, b"", *body)

    async def publish(self, body: Parts, id: bytes | None = None, timeout: float | None = None) -> Answer:
        """Send a message and wait for its acknowledgement.

        Args:
            body: One part or more.
            id: The caller's own; no two messages may wait under the same.
            timeout: Seconds; None waits forever.

        Raises:
            ClientError: ``refused`` (not stored), ``timeout``, ``closed`` or ``protocol`` (nobody knows),
                ``invalid``.
        """
        id = self.new_id() if id is None else id
        self.check(id, body)
        waiting = self.pending[id] = asyncio.get_running_loop().create_future()
        size = sum(map(len, body))
        self.buffered_bytes += size
        try:
            return await self.acknowledged(self.layout(id, body), waiting, timeout)
        except TimeoutError:
            raise ClientError("timeout", f"no acknowledgement within {timeout} s") from None
        finally:
            if waiting.done() and not waiting.cancelled():
                waiting.exception()  # what comes as the wait is cancelled was seen all the same
            self.buffered_bytes -= size
            self.forget(id)

    def check(self, id: bytes, body: Parts) -> None:
        """What cannot be sent is refused. Raises `ClientError` (invalid)."""
        if not body:
            raise ClientError("invalid", "a body has one part or more")
        if id in self.pending:
            raise ClientError("invalid", f"the id {id!r} is in use")

    async def acknowledged(
        self, message: Parts, waiting: asyncio.Future[Answer], timeout: float | None
    ) -> Answer:
        """Send, and send again at half time."""
        self.socket.send(*message)
        if timeout is not None:
            await asyncio.wait({waiting}, timeout=timeout / 2)
            if not waiting.done():
                self.repeat(message)
            timeout /= 2
        return await asyncio.wait_for(waiting, timeout)

    def repeat(self, message: Parts) -> None:
        """Send a message once more."""
        self.socket.send(*message)

    def forget(self, id: bytes) -> None:
        """Nobody waits for this message any more."""
        self.pending.pop(id, None)

    def receive(self, parts: Parts) -> None:
        """Take in an answer. Those for messages that nobody waits for are late, doubled or foreign."""
        try:
            answer = self.read(parts)
        except ClientError as error:
            waiting = self.pending.get(parts[0]) if parts else None
            if waiting is not None and not waiting.done():
                waiting.set_exception(error)
            else:
                self.runtime.callbacks.trouble("decode", error)
            return
        waiting = self.find(answer)
        if waiting is not None and not waiting.done():
            self.settle(answer, waiting)
        else:
            self.runtime.callbacks.note(f"an answer for {answer.id!r}, to no open request, was dropped")

    def find(self, answer: Answer) -> asyncio.Future[Answer] | None:
        """Whose answer it is."""
        return self.pending.get(answer.id)

    def settle(self, answer: Answer, waiting: asyncio.Future[Answer]) -> None:
        """End the wait of one message."""
        if self.stored(answer.status):
            waiting.set_result(answer)
        else:
            waiting.set_exception(ClientError("refused", self.reason(answer), code=text_of(answer.status)))

    def stored(self, status: bytes) -> bool:
        """Whether a status says that the message is stored; everything but one says that it is not."""
        return status == STORED

    def reason(self, answer: Answer) -> str:
        """Why a message was refused: the texts after the delimiter."""
        return "; ".join(map(text_of, answer.texts)) or f"status {text_of(answer.status)!r}"

    def read(self, parts: Parts) -> Answer:
        """An answer's parts. Raises `ClientError` (protocol) for anything else."""
        delimiter = next((at for at in range(2, len(parts)) if not parts[at]), None)
        if delimiter is None:
            raise ClientError(
                "protocol", f"expected [id][status][headers...][][texts...], got {len(parts)} parts"
            )
        return Answer(parts[0], parts[1], parts[delimiter + 1 :])

    def close(self) -> None:
        """End the socket; what waits gets ``closed``."""
        for waiting in self.pending.values():
            if not waiting.done():
                waiting.set_exception(ClientError("closed", "closed before the acknowledgement came"))
        self.socket.close()


def text_of(part: bytes) -> str:
    """A part as text for people, whatever it holds."""
    return part.decode(errors="replace")
