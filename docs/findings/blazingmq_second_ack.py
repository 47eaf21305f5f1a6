import time

import blazingmq

from fakebrokers import BlazingMQ
from fakebrokers.faults import duplicate

QUEUE = "bmq://bmq.test.mem.priority/orders"

with BlazingMQ() as broker:
    broker.faults.add(duplicate(role="confirm", nth=1))  # the same ACK again
    with blazingmq.Session(lambda event: None, broker=broker.url) as session:
        session.open_queue(QUEUE, write=True)
        session.post(QUEUE, b"tea", on_ack=lambda ack: None)
        time.sleep(60)
        print("the process lives")
