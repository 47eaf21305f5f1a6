"""Base scripts that use what clients of RabbitMQ Stream can be given besides: another virtual host, credit of
the application's own, arguments of streams, questions about super streams, ops inside callbacks."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.faults import latency
from fakebrokers.rabbitmq_stream.operations_access import PermissionRow, add_user, add_virtual_host
from scenarios.rabbitmq_stream.sweep._shared import ASK, EVENTS, PROBE, PUBLISH, put, watched

HOST = "other"


@base(role="publisher", handshake=True, server={"nodes": 2})
async def other_host(context: ScriptContext) -> None:
    """A virtual host and a mechanism of its own, on the connections to all nodes and after a loss."""
    server = context.broker
    add_virtual_host(server, HOST)
    add_user(server, "app", "app's own word", permissions={HOST: PermissionRow(".*", ".*", ".*")})
    for name, node in zip(("S", "S2"), server.nodes, strict=True):
        server.call(server.broker.create, HOST, name, {"initial-cluster-size": "1"}, node)
    await context.connect(user="app", password="app's own word", vhost=HOST, mechanism="PLAIN")
    options = {"offset": {"type": "first"}, "credit": 3}
    for name in ("S", "S2"):
        await context.op("subscribe", 8.0, sub=name, target=name, options=options, on_message=EVENTS)
        await context.op("publish", 8.0, body=text(f"a{name}"), target=name, wait=True)
    context.kill()
    for name in ("S", "S2"):
        await context.op("publish", 8.0, body=text(f"b{name}"), target=name, wait=True)
    await context.op("rmqs.create", 8.0, target="N")
    await context.finale("publish", **PROBE)


@base(role="consumer", needs=["rmqs.credit"])
async def own_credit(context: ScriptContext) -> None:
    """The application lets more chunks come than at first, while callbacks are busy and after a loss."""
    context.broker.create_stream("S")
    await context.connect()
    options = {"offset": {"type": "next"}, "credit": 1}
    busy = {"mode": "event", "sleep_ms": 400}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=busy)
    for number in range(6):
        put(context, f"a{number}")
    for credit in (1, 3):
        await context.op("rmqs.credit", sub="c1", credit=credit)
        await context.sleep(0.5)
    await context.sleep(3)
    context.kill()
    await context.sleep(20)
    await context.op("rmqs.credit", sub="c1", credit=2)
    for number in range(4):
        put(context, f"b{number}")
    await context.sleep(3)
    await watched(context, "last")
    await context.op("unsubscribe", sub="c1")
    await context.op("rmqs.credit", sub="c1", credit=1)
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="consumer", needs=["tracking"], injections=False)
async def tracked(context: ScriptContext) -> None:
    """The library stores the offsets of two consumers: one gets messages, the other none."""
    context.broker.create_stream("S")
    put(context, "m0", "m1", "m2")
    await context.connect()
    for name, start in (("app", {"type": "first"}), ("other", {"type": "offset", "value": 50})):
        options = {"offset": start, "name": name, "tracking": {"by": "library", "every": 2}}
        await context.op("subscribe", sub=name, target="S", options=options, on_message=EVENTS)
    await context.sleep(1)
    for name in ("app", "other"):
        await context.op("unsubscribe", sub=name)
    await context.finale("rmqs.query_sequence", **ASK)


@base()
async def created_with(context: ScriptContext) -> None:
    """Streams with arguments, which are asked for again with the same, with others and without."""
    context.broker.create_stream("S")
    await context.connect()
    given: dict[str, Any] = {
        "max-age": "2h",
        "max-length-bytes": "5000000000",
        "queue-leader-locator": "balanced",
    }
    for number, arguments in enumerate((given, {"max-length-bytes": "1000000"}, {})):
        for target in (f"N{number}", "N0"):
            await context.op("rmqs.create", target=target, arguments=arguments)
    await context.ended(
        [
            context.begin(
                "rmqs.create",
                target=f"M{number}",
                arguments={"initial-cluster-size": "1", "max-age": f"{number}s"},
            )
            for number in (1, 2, 3)
        ]
    )
    await context.op("rmqs.create", target="bad", arguments={"max-age": "a while"})
    await context.op("rmqs.metadata", targets=["N0", "N2", "bad", "M3"])
    await context.finale("rmqs.query_sequence", **ASK)


@base(needs=["rmqs.create_super_stream", "rmqs.delete_super_stream"])
async def made_super_streams(context: ScriptContext) -> None:
    """Super streams with a number of partitions, with keys and with arguments, made again and deleted."""
    context.broker.create_stream("S")
    await context.connect()
    arguments = {"max-length-bytes": "5000000000"}
    for _ in range(2):
        await context.op("rmqs.create_super_stream", target="P", partitions=3)
        await context.op("rmqs.create_super_stream", target="Q", keys=["b", "a", "ü"], arguments=arguments)
    await context.op("rmqs.metadata", targets=["P-0", "P-2", "Q-b", "Q-c"])
    context.kill()
    await context.ended(
        [
            context.begin("rmqs.create_super_stream", 8.0, target=f"R{number}", partitions=number)
            for number in (1, 2)
        ]
    )
    for target in ("P", "nowhere", "P"):
        await context.op("rmqs.delete_super_stream", target=target)
    await context.op("rmqs.create_super_stream", target="P", keys=["x"])
    await context.op("rmqs.metadata", targets=["P-0", "P-x"])
    await context.finale("rmqs.query_sequence", **ASK)


@base(needs=["rmqs.stream_stats"])
async def measured(context: ScriptContext) -> None:
    """Numbers of streams: of one that is empty, that grows, and that is not there; after a loss, too."""
    for name in ("S", "S2"):
        context.broker.create_stream(name)
    await context.connect()
    for number in range(3):
        await context.ended([context.begin("rmqs.stream_stats", 8.0, target=name) for name in ("S", "S2")])
        put(context, *[f"{number}{i}" for i in range(number + 2)])
        await context.op("rmqs.stream_stats", target="nowhere")
        if number == 1:
            context.kill()
    await context.op("rmqs.stream_stats", 8.0, target="S")
    await context.finale("rmqs.query_sequence", **ASK)


@base(needs=["rmqs.partitions", "rmqs.route"])
async def asked_of_super_streams(context: ScriptContext) -> None:
    """Partitions of super streams and the ways of keys, several at a time, of such as are not there too."""
    context.broker.create_stream("S")
    context.broker.create_super_stream("P", ("P-2", "P-0", "P-1"), ("b", "a", "b"))
    context.broker.create_super_stream("Q", ("Q-0",), ("a",))
    await context.connect()
    for number in range(2):
        await context.ended(
            [
                context.begin("rmqs.partitions", target="P"),
                context.begin("rmqs.route", target="P", key="a"),
                context.begin("rmqs.partitions", target="Q"),
                context.begin("rmqs.route", target="P", key="b"),
                context.begin("rmqs.route", target="Q", key="b"),
                context.begin("rmqs.partitions", target="nowhere"),
                context.begin("rmqs.route", target="nowhere", key="a"),
            ]
        )
        if not number:
            context.broker.delete_super_stream("Q")
    context.kill()
    await context.op("rmqs.partitions", 8.0, target="P")
    await context.op("rmqs.partitions", 8.0, target="Q")
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="publisher", needs=["super_streams"])
async def routed(context: ScriptContext) -> None:
    """Messages for super streams with a producer's name and without, waited for and not; keys that lead to
    several partitions and to none."""
    context.broker.create_stream("S")
    context.broker.create_super_stream("P", ("P-0", "P-1", "P-2"), ("a", "b", "b"))
    await context.connect()
    for number, (by, key) in enumerate(
        (("key", "a"), ("key", "b"), ("key", "none"), ("hash", "a"), ("hash", ""))
    ):
        routing = {"by": by, "key": key}
        calls = [
            context.begin(
                "publish",
                5.0,
                target="P",
                body=text(f"m{number}{name}"),
                name=name,
                routing=routing,
                wait=True,
            )
            for name in (None, "p")
        ]
        await context.ended(calls)
        if key != "b":  # of several partitions the outcomes that come later would be several, too
            await context.op("publish", 5.0, target="P", body=text(f"w{number}"), routing=routing, wait=False)
    context.kill()
    await context.op(
        "publish", 8.0, target="P", body=text("late"), routing={"by": "key", "key": "b"}, wait=True
    )
    await context.sleep(2)
    await context.finale("publish", **PROBE)


@base(role="consumer", needs=["reentrant"], injections=False)
async def inside(context: ScriptContext) -> None:
    """Ops that are asked and waited for inside callbacks: a publish, questions, a subscription's own end."""
    context.broker.create_stream("S")
    context.broker.create_stream("S2")
    context.broker.store_offset("S", "r", 7)
    await context.connect()
    ops: list[dict[str, Any]] = [
        {"op": "publish", "args": {"session": "s1", "target": "S2", "body": text("inner"), "wait": True}},
        {"op": "rmqs.query_offset", "args": {"session": "s1", "target": "S", "name": "r"}},
        {"op": "rmqs.store_offset", "args": {"session": "s1", "target": "S", "name": "app", "offset": 1}},
    ]
    options = {"offset": {"type": "next"}, "credit": 2}
    asking = {"mode": "event", "do": [{**one, "timeout_ms": 2000} for one in ops]}
    ending = {"mode": "event", "do": [{"op": "unsubscribe", "args": {"sub": "c2"}, "timeout_ms": 2000}]}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=asking)
    put(context, "a0", "a1")
    await context.sleep(2)
    put(context, "b0")
    await context.op("publish", body=text("outer"), **PUBLISH)
    await context.sleep(2)
    await context.op("unsubscribe", sub="c1")
    await context.op("subscribe", sub="c2", target="S", options=options, on_message=ending)
    put(context, "c0", "c1")
    await context.sleep(3)
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["abort"])
async def aborted(context: ScriptContext) -> None:
    """The application drops its session while ops are under way, and connects anew under the same name."""
    context.broker.create_stream("S")
    await context.connect()
    options = {"offset": {"type": "next"}, "credit": 2}
    slow = {"mode": "event", "sleep_ms": 500}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=slow)
    put(context, "m0", "m1")
    await context.op("publish", body=text("first"), **PUBLISH)
    name = context.broker.faults.add(latency(0.5, direction="out"))
    calls = [context.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(2)]
    calls.append(context.begin("publish", body=text("new"), target="S", name="p", wait=True))
    calls.append(context.begin("rmqs.query_sequence", **ASK))
    await context.sleep(0.1)
    await context.op("abort")
    await context.ended(calls)
    await context.op("publish", body=text("behind"), **PUBLISH)
    await context.op("rmqs.query_sequence", **ASK)
    await context.op("abort")
    await context.op("state")
    context.broker.faults.remove(name)
    await context.sleep(5)
    await context.connect()
    await context.op("subscribe", sub="c2", target="S", options=options, on_message=EVENTS)
    await context.op("publish", body=text("again"), **PUBLISH)
    await watched(context, "last")
    await context.finale("publish", **PROBE)
