"""Producers with one defect in how they wait, repeat and close."""

from __future__ import annotations

import asyncio

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.pzq.producer import Answer, Producer
from conformance.clients.reference.pzq.sockets import Parts

Waiting = asyncio.Future[Answer]


@mutant(
    "no-ack-timeout",
    tag="life-cycle",
    breaks=["P1", "P4", "X3", "X8"],
    aims=["NET-1.07", "PZQ-3.05", "PZQ-3.06"],
)
class NoAckTimeout(Producer):
    """Waits for an acknowledgement forever."""

    async def acknowledged(self, message: Parts, waiting: Waiting, timeout: float | None) -> Answer:
        return await super().acknowledged(message, waiting, None)


@mutant("lost-is-refused", tag="data", breaks=["P4"])
class LostIsRefused(Producer):
    """Reports a message without an answer as refused."""

    async def acknowledged(self, message: Parts, waiting: Waiting, timeout: float | None) -> Answer:
        try:
            return await super().acknowledged(message, waiting, timeout)
        except TimeoutError:
            raise ClientError("refused", "no acknowledgement came") from None


@mutant("lost-is-stored", tag="data", breaks=["P3", "P4"])
class LostIsStored(Producer):
    """Takes silence for an acknowledgement."""

    async def acknowledged(self, message: Parts, waiting: Waiting, timeout: float | None) -> Answer:
        try:
            return await super().acknowledged(message, waiting, timeout)
        except TimeoutError:
            return Answer(message[0], b"1", ())


@mutant("timeout-is-definite", tag="data", breaks=["P4"])
class TimeoutIsDefinite(Producer):
    """Says of a message without an answer that it surely was not stored."""

    async def publish(self, body: Parts, id: bytes | None = None, timeout: float | None = None) -> Answer:
        try:
            return await super().publish(body, id, timeout)
        except ClientError as error:
            error.definite = True
            raise


@mutant("pending-for-ever", tag="life-cycle", breaks=["P4", "X8"])
class PendingForEver(Producer):
    """Never forgets a message that was not acknowledged."""

    def forget(self, id: bytes) -> None:
        waiting = self.pending[id]
        if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
            super().forget(id)


@mutant("dead-after-a-timeout", tag="life-cycle", breaks=["P4"])
class DeadAfterATimeout(Producer):
    """Takes the broker for dead once an acknowledgement is missing, and sends nothing any more."""

    dead = False

    async def acknowledged(self, message: Parts, waiting: Waiting, timeout: float | None) -> Answer:
        if self.dead:
            raise ClientError("closed", "the broker is dead")
        try:
            return await super().acknowledged(message, waiting, timeout)
        except TimeoutError:
            self.dead = True
            raise


@mutant("never-repeats", tag="life-cycle", breaks=["P4", "P6"])
class NeverRepeats(Producer):
    """Does not send a message again, although it says that it does."""

    def repeat(self, message: Parts) -> None:
        pass


@mutant("hammers-when-refused", tag="life-cycle", breaks=["P4"])
class HammersWhenRefused(Producer):
    """Sends a refused message again every 50 ms until its time is over."""

    async def acknowledged(self, message: Parts, waiting: Waiting, timeout: float | None) -> Answer:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (timeout or 60.0)
        while True:
            try:
                return await super().acknowledged(message, waiting, timeout)
            except ClientError as error:
                if error.kind != "refused" or loop.time() + 0.05 > deadline:
                    raise
            await asyncio.sleep(0.05)
            waiting = self.pending[message[0]] = loop.create_future()


@mutant("close-leaves-waiters", tag="data", breaks=["P4", "X7"])
class CloseLeavesWaiters(Producer):
    """Closes and reports nothing to those who wait for an acknowledgement."""

    def close(self) -> None:
        self.socket.close()


@mutant("close-refuses", tag="data", breaks=["P4"])
class CloseRefuses(Producer):
    """Reports what waits at the close as refused."""

    def close(self) -> None:
        for waiting in self.pending.values():
            if not waiting.done():
                waiting.set_exception(ClientError("refused", "closed"))
        super().close()


@mutant("repeats-without-the-last-part", tag="data", breaks=["P1", "P4"])
class RepeatsWithoutTheLastPart(Producer):
    """Leaves the last part out of a message that it sends once more, if it has several."""

    def repeat(self, message: Parts) -> None:
        id, delimiter, *body = message
        super().repeat((id, delimiter, *(body[:-1] or body)))
