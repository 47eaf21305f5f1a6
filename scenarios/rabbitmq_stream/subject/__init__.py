"""RabbitMQ Stream."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar, cast

from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import corrupt, reply, rewrite
from fakebrokers.journal import Record, Tap
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import Close, PeerPropertiesResponse
from scenarios._common import limit_s
from scenarios.rabbitmq_stream._deliveries import record
from scenarios.rabbitmq_stream._steps import widest_gap_s
from scenarios.subjects.base import Subject
from scenarios.subjects.facts import Op


class StreamSubject(Subject):
    """A queue is a stream; confirms are PublishConfirm, acknowledgements of deliveries do not exist."""

    protocol = "rabbitmq-stream"
    rows: ClassVar = {"NET-2.11": {"revision": 2}, "NET-3.05": {"revision": 3}}
    phases: ClassVar = {
        "handshake answer": ("connect", "SaslHandshakeResponse"),
        "open answer": ("open", "DeclarePublisherResponse"),
        "confirm": ("publish", "PublishConfirm"),
        "delivery": ("consume", "Deliver"),
        "close answer": ("close", "CloseResponse"),
    }
    publishing = "Publish"
    confirm = "PublishConfirm"
    delivery = "Deliver"
    close_frame = "Close"
    close_answer = "CloseResponse"
    maintenance_code = 1

    @property
    def fake(self) -> RabbitMQStream:
        return cast(RabbitMQStream, self.broker)

    @staticmethod
    def liveness(limit_s: float) -> dict[str, Any]:
        """A silent server is given up after two heartbeats."""
        return {"heartbeat_s": int(limit_s) // 2}

    def add_queue(self, name: str) -> None:
        if name not in self.fake.streams:
            self.fake.create_stream(name)

    def stored(self, name: str) -> list[bytes]:
        return [message.body for message in self.fake.messages(name)]

    def put(self, name: str, bodies: Sequence[bytes]) -> None:
        self.fake.publish(name, [record(self.client, body) for body in bodies])

    def established(self, since: int) -> bool:
        return bool(self.broker.journal.select(kind="OpenResponse", tap=Tap.SENT, since=since))

    def subscriptions(self, since: int) -> list[Record]:
        found = self.broker.journal.select(kind="SubscribeResponse", tap=Tap.SENT, since=since)
        return [record for record in found if record.status == Code.OK]

    def ask_to_close(self, connection: str, code: int, reason: str) -> None:
        self.broker.say(connection, Close(1, code, reason))

    def ops(self, queue: str, tag: str = "") -> list[Op]:
        timed = self.client.can("ack_timeout")
        body = {"text": f"pending {tag}"}
        named = {"target": queue, "name": "a"}
        known = [
            Op("publish", "publish", "Publish", self.confirm, {"target": queue, "body": body}, timed),
            _request("QueryOffset", "query_offset", named),
            _request("QueryPublisherSequence", "query_sequence", named),
            _request("Metadata", "metadata", {"targets": [queue]}),
            _request("Create", "create", {"target": f"{queue}-new{tag}"}),
        ]
        self.fake.store_offset(queue, "a", 7)
        return [op for op in known if self.client.has(op.op)]

    def refuse_publishes(self) -> None:
        self.broker.faults.add(reply(code=Code.STREAM_DOES_NOT_EXIST, kind="Publish", nth=1, scope="run"))

    def malformed(self) -> bytes:
        return bytes.fromhex("0000000a 0003 0001 07 000003e8") + b"\0"  # promises 1000 ids

    def answer_nobody(self, count: int) -> None:
        codec = StreamCodec("server", 1 << 20)
        properties: dict[str, str | None] = {"padding": "x" * 1000}
        frames = [PeerPropertiesResponse(0x70000000 + n, Code.OK, properties) for n in range(count)]
        asks = self.ops(self.queue)[-1].asks  # on the connection that carries the requests
        asked = [r.connection for r in self.broker.journal.select(kind=asks, tap=Tap.RECEIVED)]
        standing = [name for name in asked if name in self.is_open()]
        self.expect.exercised(
            standing,
            "the client keeps no connection for requests",
            id="the-client-keeps-no-connection-for-requests",
        )
        self.broker.say_raw(standing[-1], b"".join([codec.encode(frame) for frame in frames]))

    def bad_delivery(self) -> None:
        self.broker.faults.add(rewrite(fields={"chunk.crc": 1}, kind="Deliver", nth=1, scope="run"))

    def unknown_fields(self) -> Mapping[str, tuple[str, str]]:
        more = {f"properties.future-{number}": f"value {number}" for number in range(20)}
        self.broker.faults.add(rewrite(fields=more, kind="OpenResponse", name="20 more entries"))
        return {"20 more entries": ("no connection was opened", "no-connection-was-opened")}

    def wrong_bytes(self, runs: int) -> None:
        dice = Random(self.broker.faults.plan.seed)
        first = len(self.accepted()) + 1
        for number in range(first, first + runs):
            nth = dice.randint(1, 12)
            name = f"seed {number}, frame {nth}"
            self.faults.add(corrupt(connection=f"c{number}", direction="out", nth=nth, name=name))

    def value_made_for(self, number: int) -> tuple[Op, Any] | None:
        if not self.client.has("rmqs.query_offset"):
            return None
        name = f"reference-{number}"
        self.fake.store_offset(self.queue, name, 1000 + number)
        asked = {"target": self.queue, "name": name}
        return _request("QueryOffset", "query_offset", asked), {"offset": 1000 + number}

    def from_first(self) -> dict[str, Any]:
        return {"offset": {"type": "first"}}

    async def heartbeats(self) -> None:
        period = self.fake.switches.heartbeat_s
        begin = self.broker.now - self.broker.journal.started_at
        await asyncio.sleep(2.5 * period)
        for connection in self.is_open():
            gap = widest_gap_s(self.fake, connection, begin, begin + 2.5 * period)
            self.expect.within(
                gap,
                limit_s(period),
                f"{connection}: heartbeats keep their period",
                id=slug("{}-heartbeats-keep-their-period", connection),
            )


def _request(frame: str, op: str, args: Mapping[str, Any]) -> Op:
    return Op(frame, f"rmqs.{op}", frame, f"{frame}Response", args)


SUBJECT = StreamSubject
