import asyncio

from rstream import RouteType, SuperStreamProducer

from fakebrokers import RabbitMQStream

told = []


async def confirmed(status):
    told.append(status.is_confirmed)


async def country(order):
    return "oceania"


async def place_order(broker):
    async with SuperStreamProducer(
        broker.host,
        broker.port,
        username="guest",
        password="guest",
        super_stream="orders",
        routing=RouteType.Key,
        routing_extractor=country,
    ) as producer:
        await producer.send(b"tea", on_publish_confirm=confirmed)
        print("sent")
        await asyncio.sleep(2)


with RabbitMQStream() as broker:
    broker.create_super_stream("orders", ["orders-amer", "orders-emea"], ["amer", "emea"])
    asyncio.run(place_order(broker))
    print("the application is notified:", told)
    print("stored:", sum(len(broker.messages(name)) for name in ("orders-amer", "orders-emea")))
