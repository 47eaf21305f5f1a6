import os
import threading

import blazingmq

from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.codes import Category
from fakebrokers.faults import reply

QUEUE = "bmq://bmq.test.mem.priority/orders"


def open_queue(session):
    try:
        session.open_queue(QUEUE, write=True, timeout=1.0)
    except Exception as error:
        print("it ends:", error)


with BlazingMQ() as broker:
    broker.faults.add(reply(Category.E_CANCELED, kind="openQueue", nth=1))  # E_CANCELED
    session = blazingmq.Session(lambda event: None, broker=broker.url)
    thread = threading.Thread(target=open_queue, args=[session], daemon=True)
    thread.start()
    thread.join(4)
    print("open_queue has a time-out of 1 s; after 4 s it still waits:", thread.is_alive(), flush=True)
    os._exit(0)  # the session cannot be stopped either
