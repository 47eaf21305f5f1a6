"""The reference client of any protocol, or a mutant of it, driven by the adapter protocol."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, ClassVar
from weakref import WeakSet

from conformance.clients.adapter import kit
from conformance.clients.reference.kit.definition import Reference, ReferenceClient
from conformance.clients.reference.kit.errors import ClientError, shown
from conformance.clients.reference.kit.network import Memory, Network
from conformance.clients.reference.kit.ordered import OrderedSet
from conformance.clients.reference.kit.runtime import Runtime, part_of

Json = dict[str, Any]

#: Ops that an adapter has only with this capability.
NEEDED: Mapping[str, str] = {"set_clock": "clock_offset"}

TOLD_S = 0.01  #: what it takes to report an outcome


class ReferenceAdapter(kit.AdapterBase):
    """Runs in the suite's process or in one of its own; see `adapter_of`.

    Attributes:
        reference: The protocol's part of it.
        replaced: Classes of the client that mutants replace; see `Runtime.part`.
        is_memory: Whether it reaches fakes in memory.
        protocol_ops: The protocol's ops.
    """

    reference: ClassVar[Reference]
    replaced: ClassVar[tuple[type, ...]] = ()
    is_memory: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self.protocol_ops = part_of(self.replaced, self.reference.ops)(self)
        marked = [name for name in dir(type(self.protocol_ops)) if hasattr(_member(self, name), "op")]
        methods = [getattr(self.protocol_ops, name) for name in marked]
        self.ops |= {method.op: method for method in methods}
        for name, capability in NEEDED.items():
            if capability not in self.caps.split():
                del self.ops[name]
        self._made = 0
        self._clients: WeakSet[ReferenceClient] = (
            WeakSet()
        )  # those that were replaced may have left something
        self._unwatched: OrderedSet[asyncio.Task[None]] = OrderedSet()

    @kit.op("hello")
    async def _hello(self, version: int, protocol: str) -> Json:
        return await super()._hello(version, protocol) | dict(self.reference.facts)

    # sessions

    @kit.op("connect")
    async def connect(
        self, session: str, endpoints: Any, options: Any = None, timeout_ms: float | None = None
    ) -> None:
        given: Json = options or {}
        self._made += 1
        new = self.protocol_ops.client(self.runtime(session, given), endpoints, given)
        self._clients.add(new)
        former: ReferenceClient | None = self.sessions.get(session)
        self.sessions[session] = new
        if former is not None and not former.runtime.is_closed:
            former.abort()
        await new.connect(seconds(timeout_ms))

    def runtime(self, session: str, options: Mapping[str, Any]) -> Runtime:
        """What carries the client of a session."""
        is_heard = options.get("listen", True)
        return Runtime(
            self.network(options),
            on_session=lambda *what: self.happened(session, *what) if is_heard else None,
            on_error=lambda where, error: self.failed(session, where, error) if is_heard else None,
            on_note=lambda text: self.emit("note", session=session, text=shown(text)),
            replaced=self.replaced,
            seed=self._made,
        )

    def network(self, options: Mapping[str, Any]) -> Network:
        """How a session reaches its server."""
        return part_of(self.replaced, Memory if self.is_memory else Network)(options)

    @kit.op("close")
    async def close(self, session: str, timeout_ms: float | None = None) -> None:
        await self.session(session).close(seconds(timeout_ms))
        if self._unwatched:  # outcomes that the close decides are reported before it is done
            await asyncio.wait(tuple(self._unwatched), timeout=TOLD_S)

    @kit.op("abort")
    async def abort(self, session: str) -> None:
        self.session(session).abort()

    @kit.op("state")
    async def state(self, session: str) -> Json:
        found: ReferenceClient | None = self.sessions.get(session)
        if found is None:
            return {"open": False, "pending": None}
        return {"open": found.is_open, "pending": found.pending}

    async def clear(self) -> None:
        for task in self._unwatched:
            task.cancel()
        for client in list(self._clients):
            client.abort()
        self._clients.clear()

    # callbacks

    def happened(
        self, session: str, what: str, text: str, code: int | str | None, target: str | None
    ) -> None:
        """The client's session callback."""
        more = {"targets": [shown(target)]} if target is not None else {}
        self.emit("session", session=session, what=what, text=shown(text), code=code, **more)
        self.trip("session")

    def failed(self, session: str, where: str, error: ClientError) -> None:
        """The client's error callback."""
        self.emit("error", session=session, where=where, error=error.report())
        self.trip("error")

    def surfacing(self, sub: str, target: str, on_message: Any) -> kit.Subscription:
        """A new subscription; its `deliver` belongs into the client's message callback."""
        self.subs[sub] = kit.Subscription(self, sub, target, on_message)
        return self.subs[sub]

    # outcomes

    async def published(self, work: Awaitable[Json], wait: bool, request_id: int | None) -> Json:
        """The result of a publish; where nobody waits, the outcome becomes an event.

        Args:
            work: Ends with the ``key`` and ``meta`` of the confirm, or a `ClientError`.
        """
        nothing: Json = {"key": None, "meta": {}}
        if wait:
            return {"outcome": "acked", **nothing, **await work}
        begun = asyncio.ensure_future(work)
        await asyncio.sleep(0)  # what cannot be sent at all fails, and was not sent
        if begun.done():
            begun.result()
        task = self.loop.create_task(self._outcome(begun, request_id))
        self._unwatched.add(task)
        task.add_done_callback(self._unwatched.discard)
        return {"outcome": "sent", **nothing}

    async def _outcome(self, work: Awaitable[Json], request_id: int | None) -> None:
        outcome, code = "acked", None
        try:
            await work
        except ClientError as error:
            outcome, code = error.outcome, error.code
        self.emit("outcome", id=request_id, outcome=outcome, key=None, code=code)

    # what tests turn, and see

    @kit.op("set_clock")
    async def set_clock(self, offset_ms: float) -> None:
        for client in self.sessions.values():
            client.runtime.clock.wrong_by_s = offset_ms / 1000

    @kit.op("stats")
    async def stats(self) -> Json:
        clients = list(self._clients)
        return {
            "threads": threading.active_count(),
            "tasks": sum(client.runtime.task_count for client in clients),
            "timers": sum(client.timers for client in clients),
            "pending": sum(client.pending for client in clients),
            "buffered_bytes": sum(client.buffered_bytes for client in clients),
        }


def _member(adapter: ReferenceAdapter, name: str) -> Any:
    return getattr(type(adapter.protocol_ops), name)


def adapter_of(reference: Reference, replaced: Sequence[type] = (), name: str = "") -> type[ReferenceAdapter]:
    """The adapter class of a reference client, or of a mutant of it.

    Args:
        replaced: Classes with a defect, each a subclass of a class of the client or of this kit.
        name: Of the class.
    """
    library = f"reference-{reference.protocol}"
    facts = {
        "reference": reference,
        "replaced": tuple(replaced),
        "adapter": library,
        "library": library,
        "library_version": "1",
        "protocols": (reference.protocol,),
        "roles": reference.roles,
        "caps": reference.caps,
        "callbacks": reference.callbacks,
        "settles": reference.settles,
        "formats": reference.formats,
        "contract": reference.contract,
    }
    return type(name or "Reference", (ReferenceAdapter,), facts)


def seconds(timeout_ms: float | None) -> float | None:
    """A time-out as clients want it."""
    return None if timeout_ms is None else timeout_ms / 1000
