'''What all reference clients share. A protocol's client is put together from it; it inherits nothing.

The kit has tasks, deadlines and clocks (`Tasks`, `Clock`), callbacks (`Callbacks`), serial delivery (`Feed`),
the order of those who wait (`WaitQueue`), growing pauses (`Backoff`), the way to a server (`Network`), and
the adapter (`ReferenceAdapter`) with the ops that every protocol has: connect, close, abort, state,
set_clock, stats, next, cancel, raise_next, reset. Each session gets a `Runtime`, which holds all of these.

A client for a new protocol is a package ``conformance/clients/reference/<protocol>``, found by its name:

1.  Parts: classes of the protocol alone (a codec, a connection, a publisher). They are handed the runtime, or
    the one thing of it that they need; parts make other parts, and no part subclasses another. Wherever a
    part is made, its class is asked for, so that a mutant can replace it:

        self.caller = runtime.part(Caller)(runtime, self.link)

2.  The client: an object that fits `ReferenceClient` (connect, close, abort, is_open, pending,
    buffered_bytes, timers, runtime). It sets ``runtime.is_closed`` as the first thing of its end, and
    ``abort`` calls ``runtime.end()`` as the last. Errors are `ClientError`, which the adapter
    reports as they are.

        wire = await runtime.network.dial("127.0.0.1:4222", lambda: protocol)    # asyncio.Protocol; OSError
        task = runtime.tasks.spawn(self.heartbeats())                            # ends with the client
        answer = await runtime.tasks.within(timeout, self.ask(...))              # ClientError timeout, closed
        runtime.callbacks.report("connection_lost", text)                       # session event
        runtime.callbacks.trouble("decode", error)                               # error event
        runtime.callbacks.note("an answer that nobody waits for was dropped")    # nothing is lost in silence
        feed = Feed(runtime.feeds, self.deliver_message); feed.put(message)            # callbacks one by one
        await runtime.callbacks.contain_async("message", lambda: callback(message))    # it may raise
        backoff = runtime.backoff(0.3, 4.0)
        await backoff.retry(self.open, is_final=lambda error: error.kind == "auth")

    Time is ``runtime.clock.now()`` (never `time.time`), chance is ``runtime.random``: in memory both repeat.

3.  Module ``ops.py``: a class that fits `ReferenceOps`. ``client(runtime, endpoints, options)`` makes a
    client that is not connected; every other op is a method marked with
    `conformance.clients.adapter.kit.op`. Which roles there are is up to the protocol: ``publish`` and
    ``subscribe``, or ``mol.call``, ``mol.serve``, ``mol.emit``.

        def __init__(self, adapter: ReferenceAdapter): ...
        adapter.session(name)                               # the client, or Failure closed
        adapter.surfacing(sub, target, on_message)          # a Subscription: await its deliver(...)
        await adapter.published(work, wait, request_id)     # outcome as result, or as an event later

        REFERENCE = Reference(protocol="moleculer", ops=MoleculerOps, roles=("caller", "service"),
                              caps="cancel callback_raise stats", facts={"transporters": ["nats"]})

That is all: ``python -m conformance.clients.reference moleculer`` serves it as a child process, and a
folder ``conformance/clients/adapters/reference-moleculer`` with an ``adapter.toml`` names it for
``fakebrokers conform``.

A mutant is a subclass of one part (of the protocol, its ops or this kit) with one defect, in a module
``conformance/clients/mutants/<protocol>/mutants_*.py``; it replaces that part wherever `Runtime.part` is
asked:

    @mutant("reconnects-in-step", tag="life-cycle", breaks=["X6"])
    class ReconnectsInStep(Backoff):
        """Waits equally long before a reconnect as every other client."""

        def delay(self) -> float:
            return self.grown_s

A defect that needs a second part names it: ``@mutant(..., also=[CarelessPublisher])``.
'''

from conformance.clients.reference.kit.adapter import ReferenceAdapter, adapter_of, seconds
from conformance.clients.reference.kit.backoff import Backoff
from conformance.clients.reference.kit.callbacks import Callbacks
from conformance.clients.reference.kit.clock import DEFAULT_TIMEOUT_S, Clock
from conformance.clients.reference.kit.definition import Reference, ReferenceClient, ReferenceOps
from conformance.clients.reference.kit.errors import ClientError, shown
from conformance.clients.reference.kit.feed import Feed
from conformance.clients.reference.kit.line import WaitQueue
from conformance.clients.reference.kit.network import Memory, Network, Wire
from conformance.clients.reference.kit.runtime import Runtime
from conformance.clients.reference.kit.tasks import Tasks

__all__ = [
    "DEFAULT_TIMEOUT_S",
    "Backoff",
    "Callbacks",
    "ClientError",
    "Clock",
    "Feed",
    "Memory",
    "Network",
    "Reference",
    "ReferenceAdapter",
    "ReferenceClient",
    "ReferenceOps",
    "Runtime",
    "Tasks",
    "WaitQueue",
    "Wire",
    "adapter_of",
    "seconds",
    "shown",
]
