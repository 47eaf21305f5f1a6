import asyncio

from rstream import Producer, RawMessage

from fakebrokers import RabbitMQStream


async def publish(broker):
    async with Producer(broker.host, broker.port, username="guest", password="guest") as producer:
        await producer.send_wait("orders", b"a note, without a name")
        await producer.send_wait("orders", RawMessage(b"order 7", publishing_id=7), publisher_name="shop")


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    for _ in range(2):  # the shop starts anew and repeats its last order, to be sure
        asyncio.run(publish(broker))
    print("declared:", [record.frame.reference for record in broker.journal.select(kind="DeclarePublisher")])
    print("order 7 is stored", [m.body for m in broker.messages("orders")].count(b"order 7"), "times")
