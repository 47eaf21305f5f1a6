"""Questions to the monitor with one defect."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.pzq.inquirer import Inquirer, Values
from conformance.clients.reference.pzq.sockets import Parts

LONGEST = 4000
KNOWN = {
    "messages",
    "messages_inflight",
    "messages_in_flight",
    "db_size",
    "inflight_db_size",
    "in_flightdb_size",
    "syncs",
    "expired_messages",
}


@mutant("lines-all-count", tag="wire", breaks=["P12"])
class LinesAllCount(Inquirer):
    """Takes what follows the last newline for a line with an empty key."""

    def read(self, parts: Parts) -> Values:
        values = super().read(parts)
        if parts[0].endswith(b"\n"):
            values[""] = ""
        return values


@mutant("numbers-of-any-script", tag="wire", breaks=["P12"])
class NumbersOfAnyScript(Inquirer):
    """Takes the digits of every script for a number, as Python's `int` does."""

    def value(self, text: str) -> int | str:
        return int(text) if text.isdecimal() and len(text) < LONGEST else text


@mutant("last-line-is-empty", tag="wire", breaks=["P12"])
class LastLineIsEmpty(Inquirer):
    """Leaves out the last line, as a newline is at the end."""

    def read(self, parts: Parts) -> Values:
        return super().read((b"\n".join(parts[0].split(b"\n")[:-1]),))


@mutant("known-keys-only", tag="wire", breaks=["P12"])
class KnownKeysOnly(Inquirer):
    """Fails on a key that it does not know."""

    def read(self, parts: Parts) -> Values:
        values = super().read(parts)
        if not KNOWN.issuperset(values):
            raise ClientError("protocol", f"unknown keys: {sorted(set(values) - KNOWN)}")
        return values


@mutant("colon-and-blank", tag="wire", breaks=["P12"])
class ColonAndBlank(Inquirer):
    """Splits lines at the last colon with a blank after it."""

    def split(self, line: str) -> tuple[str, str, str]:
        return line.rpartition(": ")


@mutant("values-are-numbers", tag="wire", breaks=["P12"])
class ValuesAreNumbers(Inquirer):
    """Fails on a value that is no number."""

    def value(self, text: str) -> int | str:
        return int(text)


@mutant("one-question-at-a-time", tag="life-cycle", breaks=["P12"])
class OneQuestionAtATime(Inquirer):
    """Keeps one place for who waits: an answer goes to the question that was asked last."""

    async def ask(self, timeout: float | None = None) -> Values:
        answered: asyncio.Future[Parts] = asyncio.get_running_loop().create_future()
        self.waiting.clear()
        self.waiting.add(answered)
        socket = self.connector.connect(self.endpoint, self.kind, self._answer)
        socket.send(*self.request())
        try:
            return self.read(await asyncio.wait_for(answered, timeout))
        except TimeoutError:
            raise ClientError("timeout", "the monitor did not answer") from None
        finally:
            self.waiting.discard(answered)
            socket.close()

    def _answer(self, parts: Parts) -> None:
        for answered in self.waiting:
            if not answered.done():
                answered.set_result(parts)


@mutant("late-answers-are-for-the-next", tag="data", breaks=["P12"])
class LateAnswersAreForTheNext(Inquirer):
    """Keeps the answer to a question that had run out of time, and returns it for the next question."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.late: list[Parts] = []

    async def ask(self, timeout: float | None = None) -> Values:
        if self.late:
            return self.read(self.late.pop(0))
        asking = asyncio.ensure_future(super().ask(None))
        done, _ = await asyncio.wait({asking}, timeout=timeout)
        if not done:
            asking.add_done_callback(self._keep)
            raise ClientError("timeout", "the monitor did not answer")
        return asking.result()

    def read(self, parts: Parts) -> Values:
        self.last = parts
        return super().read(parts)

    def _keep(self, asking: asyncio.Future[Values]) -> None:
        if not asking.cancelled() and asking.exception() is None:
            self.late.append(self.last)


@mutant("counters-of-32-bits", tag="data", breaks=["P12"])
class CountersOf32Bits(Inquirer):
    """Keeps a number in 32 bits, the first of which is its sign."""

    def value(self, text: str) -> int | str:
        value = super().value(text)
        return value if isinstance(value, str) else int.from_bytes(pack_low(value, 4), "big", signed=True)


@mutant("counters-are-floats", tag="data", breaks=["P12"])
class CountersAreFloats(Inquirer):
    """Reads a number as a floating-point one."""

    def value(self, text: str) -> int | str:
        value = super().value(text)
        return value if isinstance(value, str) else int(float(value))


@mutant("counters-of-63-bits", tag="data", breaks=["P12"])
class CountersOf63Bits(Inquirer):
    """Keeps a number in 64 bits, the first of which is its sign."""

    def value(self, text: str) -> int | str:
        value = super().value(text)
        return value if isinstance(value, str) else int.from_bytes(pack_low(value, 8), "big", signed=True)


def pack_low(value: int, size: int) -> bytes:
    """The lowest bytes of a number."""
    return (value % (1 << 8 * size)).to_bytes(size, "big")
