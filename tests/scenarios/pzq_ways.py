"""What correct clients of PZQ do in their own manner: parts in place of the reference client's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.pzq.consumer import Consumer, Delivery, Parts
from conformance.clients.reference.pzq.inquirer import Inquirer
from conformance.clients.reference.pzq.producer import Answer, Producer


class BodyMayBeMissing(Consumer):
    """A delivery that ends with its delimiter is a message without parts."""

    def read(self, parts: Parts) -> Delivery:
        at = self.delimiter(parts)
        if at is None or at + 1 < len(parts):
            return super().read(parts)
        return super().read((*parts, b""))._replace(body=())


class LooksLessOftenWhenIdle(Consumer):
    """Looks for messages at once while some come, and less often where none has come for a second."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._came = asyncio.get_running_loop().time()

    async def handle(self, delivery: Delivery) -> None:
        before, self._came = self._came, asyncio.get_running_loop().time()
        await asyncio.sleep(0.3 if self._came - before > 1 else 0)
        await super().handle(delivery)


class NoListOfOne(AdapterBase):
    """Reports a message of one part as that part, and not as a list. Its author has declared nothing."""

    contract: Mapping[str, bool] = {}

    def emit(self, event: str, **fields: Any) -> None:
        if event == "message" and isinstance(fields["body"], list) and len(fields["body"]) == 1:
            [fields["body"]] = fields["body"]
        super().emit(event, **fields)


class StatusIsEnough(Producer):
    """Reads the status of an answer, and needs no delimiter behind it, as PZQ's own client in PHP."""

    def read(self, parts: Parts) -> Answer:
        return super().read(parts if len(parts) != 2 else (*parts, b""))


class ValuesAreDigits(Inquirer):
    """Hands over the values of the monitor as the text that they are."""

    def value(self, text: str) -> str:
        return text


class ByTheLetter(Inquirer):
    """Reads lines ``key: value``, as the daemon writes them, and no others."""

    def split(self, line: str) -> tuple[str, str, str]:
        return line.partition(": ")


class SendsWhateverItTakes(Producer):
    """Keeps its socket behind a close until what it was given has left, as libzmq does without ZMQ_LINGER."""

    def close(self) -> None:
        end, waits = self.socket.close, bool(self.pending)
        self.socket.close = lambda: None  # type: ignore[method-assign]
        super().close()
        if not waits:
            end()
        self._end = end
        self._is_closed = True

    _is_closed = False

    def receive(self, parts: Parts) -> None:
        super().receive(parts)
        if self._is_closed:
            self._end()


class OddAnswersAreErrors(Producer):
    """Tells of each answer for which nobody waits, as an error of the protocol."""

    def receive(self, parts: Parts) -> None:
        if parts and parts[0] not in self.pending:
            self.runtime.callbacks.trouble("read", ClientError("protocol", f"nobody waits for {parts[0]!r}"))
        super().receive(parts)


WAYS: Mapping[str, tuple[tuple[type, ...], type[AdapterBase] | None]] = {
    "status-is-enough": ((StatusIsEnough,), None),
    "sends-whatever-it-takes": ((SendsWhateverItTakes,), None),
    "odd-answers-are-errors": ((OddAnswersAreErrors,), None),
    "values-are-digits": ((ValuesAreDigits,), None),
    "by-the-letter": ((ByTheLetter,), None),
    "body-may-be-missing": ((BodyMayBeMissing,), NoListOfOne),
    "looks-less-often-when-idle": ((LooksLessOftenWhenIdle,), None),
    "no-list-of-one": ((), NoListOfOne),
}
