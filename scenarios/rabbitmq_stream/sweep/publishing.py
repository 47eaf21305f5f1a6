"""Base scripts of applications that publish."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import Base, ScriptContext, base, text
from fakebrokers.faults import delay, latency, stall
from scenarios.rabbitmq_stream.sweep._shared import PROBE, PUBLISH, put


async def publishing(context: ScriptContext, name: str | None) -> None:
    """Waited for and not, singly and many, then the publisher is deleted and made anew."""
    context.broker.create_stream("S")
    await context.connect()
    to: dict[str, Any] = {"target": "S", "name": name}
    calls = [context.begin("publish", body=text(f"a{i}"), wait=True, **to) for i in range(3)]
    await context.sleep(0.05)
    for word, wait in (("b", False), ("c", True)):
        many = [{"body": text(f"{word}{i}")} for i in range(3)]
        calls.append(context.begin("publish_many", messages=many, wait=wait, **to))
        await context.sleep(0.05)
    await context.ended(calls)
    await context.op("publish", body=text("d"), wait=True, **to)
    await context.op("flush")
    if name:
        await context.op("rmqs.query_sequence", **to)
    await context.op("rmqs.delete_publisher", **to)
    await context.op("publish", body=text("e"), wait=True, **to)
    await context.finale("publish", **{**PROBE, "name": name})


@base(role="publisher", handshake=True)
async def publish(context: ScriptContext) -> None:
    """Publishes without a name: what has no confirm is not repeated."""
    await publishing(context, None)


@base(role="publisher", injections=False, needs=["callback_raise"])
async def raising_in_a_batch(context: ScriptContext) -> None:
    """The callback of one message raises, and those of others come with it in one confirm or refusal."""
    context.broker.create_stream("S")
    context.notes.raises = True
    await context.connect()
    for number in range(2):
        await context.op("raise_next", callback="confirm", times=1)
        many = [{"body": text(f"{number}{i}")} for i in range(4)]
        await context.op("publish_many", messages=many, wait=number > 0, target="S")
        await context.sleep(5)
    await context.op("raise_next", callback="confirm", times=0)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def newcomers(context: ScriptContext) -> None:
    """Messages that come at every moment of the way on which the first one gets its publisher."""
    context.broker.create_stream("S")
    await context.connect()
    await context.publish_each_turn(30, **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def publish_named(context: ScriptContext) -> None:
    """Publishes under a name: what has no confirm is repeated after a loss."""
    await publishing(context, "p")


@base(role="publisher", injections=False)
async def flushed(context: ScriptContext) -> None:
    """A flush waits for all publishers, also where one of them has nothing under way."""
    for name in ("S", "S2"):
        context.broker.create_stream(name)
    await context.connect()
    for number, (slow, target) in enumerate((("S2", "S"), ("S", "S2"))):
        await context.op("publish", body=text(f"a{number}"), target=target, wait=True)
        context.broker.faults.add(delay(2.0, kind="PublishConfirm", nth=1))
        await context.op("publish", body=text(f"b{number}"), target=slow, wait=False)
        await context.op("flush", 8.0)
        await context.sleep(3)
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["named_publisher"], injections=False)
async def own_ids(context: ScriptContext) -> None:
    """The application gives publishing ids of its own, from 0 and with gaps, singly and many."""
    context.broker.create_stream("S")
    await context.connect()
    to: dict[str, Any] = {"target": "S", "name": "own", "wait": True}
    for key in (0, 1, 5):
        await context.op("publish", body=text(f"a{key}"), key=str(key), **to)
    many = [{"body": text(f"b{key}"), "key": str(key)} for key in (6, 7, 2**53 + 1)]
    await context.op("publish_many", messages=many, **to)
    await context.op("rmqs.query_sequence", target="S", name="own")
    await context.op("rmqs.delete_publisher", target="S", name="own")
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["subentry"])
async def packed(context: ScriptContext) -> None:
    """Publishes batches of which each is one message for the broker, and plain messages in between."""
    context.broker.create_stream("S")
    await context.connect()
    for number in range(3):
        many = [{"body": text(f"z{number}-{i}")} for i in range(4)]
        kind = "gzip" if number % 2 else "none"
        context.begin("publish_many", messages=many, subentry=kind, wait=number != 2, target="S")
        await context.op("publish", body=text(f"y{number}"), **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["subentry", "named_publisher"])
async def packed_by_name(context: ScriptContext) -> None:
    """Publishes batches under a name, of which each takes an id of that name."""
    context.broker.create_stream("S")
    await context.connect()
    for number in range(3):
        many = [{"body": text(f"z{number}-{i}")} for i in range(3)]
        await context.op("publish_many", messages=many, subentry="none", wait=True, target="S", name="p")
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def crowd(context: ScriptContext) -> None:
    """Publishers of several streams and names on one session; an outcome belongs to one of them."""
    for name in ("S", "S2"):
        context.broker.create_stream(name)
    await context.connect()
    for number in range(2):
        calls = [
            context.begin(
                "publish", body=text(f"{target}{name}{number}{i}"), target=target, name=name, wait=True
            )
            for i in range(2)
            for target, name in (("S", None), ("S2", None), ("S", "p"), ("S", "q"))
        ]
        await context.ended(calls)
    await context.op("rmqs.delete_publisher", target="S", name="p")
    await context.op("publish", body=text("behind"), **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def refused(context: ScriptContext) -> None:
    """Publishes to what is not there, then deletes what there was while messages are under way."""
    context.broker.create_stream("S")
    context.broker.create_stream("D")
    await context.connect()
    await context.op("publish", body=text("x"), target="nowhere", wait=True)
    calls = [context.begin("publish", body=text(f"d{i}"), target="D", wait=True) for i in range(3)]
    await context.sleep(0.02)
    context.broker.delete_stream("D")
    calls.append(context.begin("publish", body=text("late"), target="D", wait=True))
    calls.append(context.begin("publish", body=text("other"), **PUBLISH))
    await context.ended(calls)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def bulk(context: ScriptContext) -> None:
    """More than a transport takes at once."""
    context.broker.create_stream("S")
    await context.connect()
    for number, (count, size) in enumerate(((10, 60_000), (3, 200_000), (1, 900_000))):
        for word, wait in (("-", True), ("=", False)):
            many = [{"body": text(f"{number}{word}{i}-".ljust(size, "x"))} for i in range(count)]
            await context.op("publish_many", 5.0, messages=many, wait=wait, target="S")
        await context.sleep(6)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False, costly=True)
async def windows(context: ScriptContext) -> None:
    """Many windows of messages, each confirmed before the next one."""
    context.broker.create_stream("S")
    await context.connect()
    for number in range(20):
        many = [{"body": text(f"{number}-{i}")} for i in range(400)]
        await context.op("publish_many", 5.0, messages=many, **PUBLISH)
    await context.finale("publish", **PROBE)


FRAME_MAX = 4096
HEAD = (
    9 + 8 + 4
)  #: bytes of a Publish with one message, besides its body (docs/protocols/rabbitmq-stream.md, 6)
PER_MESSAGE = 12


@base(role="publisher", injections=False)
async def stalled(context: ScriptContext) -> None:
    """The server reads nothing for a while, and more is published than fits on the way."""
    context.broker.create_stream("S")
    await context.connect()
    await context.op("publish", body=text("first"), **PUBLISH)
    name = context.broker.faults.add(stall(direction="in", role="publish", nth=1))
    calls = []
    for number in range(12):
        many = [{"body": text(f"{number}-{i}-".ljust(60_000, "x"))} for i in range(2)]
        calls.append(context.begin("publish_many", 20.0, messages=many, **PUBLISH))
        calls.append(context.begin("publish", 20.0, body=text(f"small{number}"), **PUBLISH))
        await context.sleep(0.05)
    await context.sleep(3)
    context.broker.faults.remove(name)
    await context.ended(calls)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def limits(context: ScriptContext) -> None:
    """Every size around the agreed frame maximum, singly and in batches."""
    context.broker.create_stream("S")
    await context.connect(frame_max=FRAME_MAX)
    fits = context.notes.fits
    for more in (-2, -1, 0, 1, 2):
        fits.append((len(context.ops), more <= 0))
        body = chr(ord("d") + more) * (FRAME_MAX - HEAD + more)
        await context.op("publish", body=text(body), **PUBLISH)
    for count in (2, 3, 5):
        for more in (-9, -8, -5, -4, -1, 0, 1, 4, 5, 8, 9):
            material = FRAME_MAX - 9 - PER_MESSAGE * count + more
            sizes = [material // count] * (count - 1) + [material - material // count * (count - 1)]
            many = [{"body": text(f"{count}/{more}/{i}-".ljust(size, "x"))} for i, size in enumerate(sizes)]
            await context.op("publish_many", messages=many, **PUBLISH)
    many = [{"body": text(f"t{i}")} for i in range(600)]
    await context.op("publish_many", messages=many, **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def longer_in_bytes(context: ScriptContext) -> None:
    """Letters of two and three bytes around the agreed frame maximum in letters and in bytes, singly and in
    batches."""
    context.broker.create_stream("S")
    await context.connect(frame_max=FRAME_MAX)
    room = FRAME_MAX - HEAD
    for letter, width in (("é", 2), ("漢", 3)):
        for count in (room // width, room // width + 1, room // 2 + 100, room):
            context.notes.fits.append((len(context.ops), count * width <= room))
            await context.op("publish", body=text(letter * count), **PUBLISH)
        many = [{"body": text(f"{i}-".ljust(room // 4, letter))} for i in range(4)]
        await context.op("publish_many", messages=many, **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False, costly=True)
async def numbers(context: ScriptContext) -> None:
    """More declarations than there are ids, and as many publishers as there are at a time."""
    context.broker.create_stream("S")
    await context.connect()
    for number in range(270):
        await context.op("rmqs.declare_publisher", target="S", name=f"p{number % 2}")
        await context.op("rmqs.delete_publisher", target="S", name=f"p{number % 2}")
    for number in range(10):
        await context.op("rmqs.declare_publisher", target="S", name=f"q{number}")
    for number in range(250):
        await context.op("rmqs.declare_publisher", target="S", name="r")
        if number < 249:
            await context.op("rmqs.delete_publisher", target="S", name="r")
    put(context, "for all of them")
    for _ in range(270):
        options = {"offset": {"type": "first"}, "credit": 1}
        await context.op("subscribe", sub="c", target="S", options=options, on_message={"mode": "event"})
        await context.op("unsubscribe", sub="c")
    options = {"offset": {"type": "first"}, "credit": 2}
    await context.op("subscribe", sub="last", target="S", options=options, on_message={"mode": "event"})
    await context.op("publish", body=text("for the last one"), **PUBLISH)
    await context.sleep(1)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def bodies(context: ScriptContext) -> None:
    """Bodies of every size that is special to some layer, one by one and together."""
    context.broker.create_stream("S")
    await context.connect()
    options = {"offset": {"type": "first"}, "credit": 5}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message={"mode": "event"})
    sizes = (0, 1, 2, 127, 128, 255, 256, 4095, 4096, 32_767, 32_768, 65_535, 65_536, 70_000)
    many: list[dict[str, Any]] = [{"body": {"gen": "rand", "seed": size, "len": size}} for size in sizes]
    for message in many:
        await context.op("publish", **PUBLISH, **message)
    again = [{"body": {"gen": "rand", "seed": size + 1, "len": size + 3}} for size in sizes]
    await context.op("publish_many", messages=again, **PUBLISH)
    await context.sleep(1)
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def given_up(context: ScriptContext) -> None:
    """Messages that are cancelled, or whose publisher is closed, before their confirms come."""
    context.broker.create_stream("S")
    await context.connect()
    await context.op("publish", body=text("first"), **PUBLISH)
    context.broker.faults.add(latency(0.2, role="confirm", direction="out"))
    for number in range(2):
        calls = [context.begin("publish", body=text(f"c{number}{i}"), **PUBLISH) for i in range(3)]
        await context.sleep(0.05)
        await context.adapter.cancel(calls[0])
        await context.op("publish", body=text(f"d{number}"), **PUBLISH)
    many = [{"body": text(f"e{i}")} for i in range(3)]
    await context.op("publish_many", messages=many, target="S", wait=False)
    context.begin("publish", body=text("f"), **PUBLISH)
    await context.sleep(0.05)
    await context.op("rmqs.delete_publisher", target="S", name=None)
    await context.op("publish", body=text("g"), **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def names(context: ScriptContext) -> None:
    """References and streams of every length that fits, and of one more."""
    long = "n" * 255
    context.notes.oversized = True
    context.broker.create_stream("S")
    context.broker.create_stream(long)
    context.broker.store_sequence("S", "äöü", 41)
    await context.connect()
    for name in (long, long + "n", "äöü", "a" * 254 + "ü"):
        await context.op("publish", body=text(f"of {name}"), target="S", name=name, wait=True)
        await context.op("rmqs.query_sequence", target="S", name=name)
    await context.op("publish", body=text("far"), target=long, wait=True)
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["counter_seed"], injections=False)
async def wraps(context: ScriptContext) -> None:
    """Counters at the ends of their ranges; at last one of the first numbers is still in use."""
    context.broker.create_stream("S")
    await context.connect()
    await context.op("publish", body=text("first"), **PUBLISH)
    for which, values in (
        ("publishing", (2**53, 2**63 - 1, 2**64 - 2)),
        ("correlation", (2**31 - 1, 2**32 - 2)),
    ):
        for value in values:
            await context.op("set_counter", which=which, value=str(value))
            for number in range(3):
                await context.op("publish", body=text(f"{which}{value}{number}"), **PUBLISH)
                await context.op("rmqs.query_sequence", target="S", name="nobody")
    await context.op("set_counter", which="correlation", value="1")
    context.broker.faults.add(delay(1.0, kind="QueryPublisherSequenceResponse", direction="out", nth=1))
    held = context.begin("rmqs.query_sequence", 5.0, target="S", name="nobody")
    await context.sleep(0.1)
    await context.op("set_counter", which="correlation", value=str(2**32 - 2))
    for _ in range(5):
        await context.op("rmqs.query_sequence", target="S", name="nobody")
    await context.ended([held])
    await context.finale("publish", **PROBE)


def unlimited(server: int, client: int | None) -> Base:
    """One side, or both, want no limit of frames."""

    async def script(context: ScriptContext) -> None:
        context.broker.create_stream("S")
        wanted: dict[str, Any] = {} if client is None else {"frame_max": client}
        await context.connect(**wanted)
        limit = client or 1 << 20
        fits = context.notes.fits
        for size in (100, 5000, FRAME_MAX - HEAD, limit - HEAD, limit - HEAD + 1):
            if client is not None or size <= limit - HEAD:  # what nobody has limited, a library may limit
                fits.append((len(context.ops), client == 0 or size <= limit - HEAD))
            await context.op("publish", body={"gen": "rand", "seed": size, "len": size}, **PUBLISH)
        await context.finale("publish", **PROBE)

    name = f"unlimited-{server}-{client}"
    return base(role="publisher", server={"frame_max": server}, injections=False, name=name)(script)


UNLIMITED = [unlimited(0, None), unlimited(0, 0), unlimited(1 << 22, FRAME_MAX), unlimited(0, FRAME_MAX)]
