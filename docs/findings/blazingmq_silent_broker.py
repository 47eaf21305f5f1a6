import os
import time

import blazingmq

from fakebrokers import BlazingMQ
from fakebrokers.faults import silent

told = []
with BlazingMQ(heartbeat_s=1.0, max_missed=3) as broker:
    session = blazingmq.Session(told.append, broker=broker.url)
    while not told:  # that it is connected
        time.sleep(0.02)
    told.clear()
    broker.faults.add(silent())
    time.sleep(8)
    print("heartbeats every second, and silence for 8 s; the session is notified:", told, flush=True)
    os._exit(0)  # the session waits for the broker
