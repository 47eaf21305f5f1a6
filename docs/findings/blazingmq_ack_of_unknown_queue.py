import time

import blazingmq

from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.build import other_queue

QUEUE = "bmq://bmq.test.mem.priority/orders"

with BlazingMQ() as broker:
    broker.faults.add(other_queue(99, role="confirm", nth=1))  # an ACK for a queue id that was never opened
    with blazingmq.Session(lambda event: None, broker=broker.url) as session:
        session.open_queue(QUEUE, write=True)
        session.post(QUEUE, b"tea", on_ack=lambda ack: None)
        time.sleep(60)
        print("the process lives")
