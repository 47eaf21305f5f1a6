"""An adapter without a library, well-behaved or with the defect that its argument names; tests start it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from typing import Any, ClassVar

from conformance.clients.adapter.kit import AdapterBase, Failure, Subscription, body_bytes, op, run


class Toy(AdapterBase):
    adapter = library = "toy"
    library_version = "1"
    protocols = ("rabbitmq-stream",)
    roles = ("publisher", "consumer")
    caps = "callback_raise cancel"
    meeting, met = threading.Condition(), 0

    @op("connect")
    async def connect(self, session: str) -> None:
        self.sessions[session] = []

    @op("close")
    async def close(self, session: str) -> None:
        self.sessions.pop(self.session(session) and session, None)

    @op("state")
    async def state(self, session: str) -> dict[str, Any]:
        return {"open": session in self.sessions, "pending": None}

    @op("publish")
    async def publish(self, session: str, target: str, body: dict[str, Any]) -> dict[str, Any]:
        if target == "refuse":
            raise Failure("refused", "no", code=17)
        if target == "lost":
            raise ConnectionResetError("gone")
        if target == "forever":
            await asyncio.Event().wait()
        if target == "slow":
            await asyncio.sleep(0.6)
        for subscription in self.subs.values():
            await subscription.deliver(body_bytes(body), position="0")
        return {"outcome": "acked", "key": None}

    @op("subscribe")
    async def subscribe(self, session: str, sub: str, target: str, on_message: Any = None) -> None:
        self.subs[sub] = Subscription(self, sub, target, on_message)

    @op("unsubscribe")
    async def unsubscribe(self, sub: str) -> None:
        self.subs.pop(self.subscription(sub).sub)

    @op("toy.meet")
    def meet(self, count: int) -> dict[str, Any]:
        """Ends when so many are in here at once."""
        with self.meeting:
            self.met += 1
            self.meeting.notify_all()
            self.meeting.wait_for(lambda: self.met >= count)
        return {"thread": True}

    @op("toy.exit")
    async def exit(self, code: int) -> None:
        os._exit(code)

    @op("toy.print")
    async def print(self, text: str) -> None:
        print(text, flush=True)

    @op("toy.child")
    async def child(self) -> dict[str, Any]:
        return {"pid": subprocess.Popen(["sleep", "1000"]).pid}

    @op("toy.bytes")
    async def bytes(self) -> dict[str, Any]:
        return {"text": os.fsdecode(b"caf\xe9")}  # a lone surrogate

    @op("toy.line")
    async def line(self, size: int) -> dict[str, Any]:
        return {"text": "x" * size}


class Scoped(Toy):
    """Its library has the kind of name that other registries allow, and worse."""

    library = "@scope/[red]x[/red]\x1b[31m"


class Liar(Toy):
    """Answers every op with ok."""

    async def attempt(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = await super().attempt(request)
        unknown = answer.get("error", {}).get("kind") == "unsupported"
        return {"ok": True, "result": {}} if unknown else answer


class Miscounting(Toy):
    """Leaves a number out."""

    def _write(self, line: dict[str, Any]) -> None:
        if line.get("id") == 5:
            next(self._lines)
        super()._write(line)


class Garbling(Toy):
    """Echoes a text in another encoding."""

    @op("echo")
    async def _echo(self, body: dict[str, Any]) -> dict[str, Any]:
        body = {"text": body["text"].encode("ascii", "replace").decode()} if "text" in body else body
        return await super()._echo(body)


class Stubborn(Toy):
    """Does not end when its input ends."""

    async def clear(self) -> None:
        if self.stopped_reading:
            time.sleep(100)

    @property
    def stopped_reading(self) -> bool:
        return not self._running


class Incomplete(Toy):
    """Says that it consumes, and cannot."""

    @op("not.subscribe")
    async def subscribe(self) -> None:
        pass


class Bounding(Toy):
    """Has a bound for what is no argument, besides one that there is."""

    limits: ClassVar = {"subscribe.credit_max": 10, "subscribe.colour_max": 1}


class Boasting(Toy):
    """Declares a capability that nobody knows."""

    caps = "teleport"


class Promising(Toy):
    """Its contract has a word that nobody knows."""

    contract: ClassVar = {"waits": False, "flies": True}


class Twice(Toy):
    """Answers a reset two times."""

    def _write(self, line: dict[str, Any]) -> None:
        super()._write(line)
        if line.get("ok") and "open" not in line["result"] and line["id"] > 100:
            super()._write(line)


class Future(Toy):
    """Speaks another version of the protocol, and does not say so when it is asked."""

    @op("hello")
    async def _hello(self, version: int, protocol: str) -> dict[str, Any]:
        return {**await super()._hello(version, protocol), "version": 2}


class Confused(Toy):
    """Its own code stumbles over what it wants to make of an error of the library."""

    def classify(self, error: Exception) -> Failure:
        raise AttributeError("module 'mylib' has no attribute 'Refused'")


class Raw(Toy):
    """Reports bytes where the lines have text."""

    @op("publish")
    async def publish(self, session: str, target: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"outcome": "acked", "key": b"caf\xe9"}


class Serial(Toy):
    """Loses every tenth question about a session."""

    def receive(self, request: dict[str, Any]) -> None:
        if request["op"] != "state" or request["id"] % 10:
            super().receive(request)


class Mute(Toy):
    """Never answers hello."""

    def receive(self, request: dict[str, Any]) -> None:
        if request["op"] != "hello":
            super().receive(request)


class Strict(Toy):
    """Fails on members that it does not know."""

    async def _perform(self, request: dict[str, Any]) -> Any:
        if "from_the_future" in request.get("args", {}):
            raise ValueError("what is that?")
        return await super()._perform(request)


class Forgetful(Toy):
    """Cannot reset a second time."""

    resets = 0

    async def clear(self) -> None:
        self.resets += 1
        if self.resets > 1:
            raise RuntimeError("reset before")


if __name__ == "__main__":
    run(globals()[sys.argv[1] if len(sys.argv) > 1 else "Toy"]())
