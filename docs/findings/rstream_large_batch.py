import asyncio

from rstream import Producer

from fakebrokers import RabbitMQStream


async def publish(broker):
    confirmed = []
    producer = Producer(broker.host, broker.port, username="guest", password="guest")
    await producer.start()
    orders = [bytes(20_000) for _ in range(100)]  # 2 MB; a frame may have 1 MiB
    await producer.send_batch("orders", orders, on_publish_confirm=confirmed.append)
    await broker.wait_for_async(lambda record: record.kind in ("Close", "PublishConfirm"), timeout=60)
    await asyncio.sleep(1)
    print("sent: 100, confirmed:", sum(status.is_confirmed for status in confirmed))


with RabbitMQStream() as broker:
    broker.create_stream("orders")
    asyncio.run(publish(broker))
    print("stored:", len(broker.messages("orders")))
    print("the server says:", *[record.frame.reason for record in broker.journal.select(kind="Close")])
