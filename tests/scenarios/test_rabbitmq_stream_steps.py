"""Steps of the scenarios of RabbitMQ Stream."""

from __future__ import annotations

from fakebrokers import RabbitMQStream
from fakebrokers.core import virtual
from fakebrokers.rabbitmq_stream.frames import Heartbeat
from scenarios.rabbitmq_stream._lifecycle import kept
from tests.rabbitmq_stream.test_say_close import Client


def test_a_connection_is_kept_however_much_came_on_it() -> None:
    async def context() -> None:
        with RabbitMQStream(memory=True, journal_limit=3) as broker:
            client = Client(broker)
            await client.log_in()
            await client.send(*[Heartbeat()] * 3)
            assert broker.journal.dropped and not broker.journal.select(kind="accepted")
            assert kept(broker) == ["c1"]
            client.link.close()
            assert kept(broker) == []

    virtual.run(context())
