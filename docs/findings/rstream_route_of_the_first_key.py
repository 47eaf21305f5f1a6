import asyncio

from rstream import RouteType, SuperStreamProducer

from fakebrokers import RabbitMQStream


async def country(order):
    return order.decode().partition(" ")[0]


async def place_orders(broker):
    async with SuperStreamProducer(
        broker.host,
        broker.port,
        username="guest",
        password="guest",
        super_stream="orders",
        routing=RouteType.Key,
        routing_extractor=country,
    ) as producer:
        for order in (b"amer tea", b"emea milk", b"apac salt"):
            await producer.send(order)
        await broker.wait_for_async(role="confirm", timeout=60)


with RabbitMQStream() as broker:
    broker.create_super_stream(
        "orders", ["orders-amer", "orders-emea", "orders-apac"], ["amer", "emea", "apac"]
    )
    asyncio.run(place_orders(broker))
    for name in ("orders-amer", "orders-emea", "orders-apac"):
        print(name, [message.body for message in broker.messages(name)])
