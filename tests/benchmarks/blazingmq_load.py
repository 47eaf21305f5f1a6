"""Posts messages with ACK through the C++ SDK, as its users do.

    python blazingmq_load.py tcp://HOST:PORT MESSAGES ROUNDS

prints the seconds of each round, from the first post to the last ACK, and its seconds of processor time.
"""

from __future__ import annotations

import json
import sys
import threading
import time

import blazingmq

URI = "bmq://bmq.test.mem.priority/load"
BODY = b"x" * 100


def main() -> None:
    url, messages, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    answered = 0
    done = threading.Event()

    def on_ack(ack: blazingmq.Ack) -> None:
        nonlocal answered
        assert ack.status is blazingmq.AckStatus.SUCCESS, ack.status
        answered += 1
        if answered == messages:
            done.set()

    session = blazingmq.Session(lambda event: None, broker=url)
    session.open_queue(URI, write=True)
    seconds = []
    for _ in range(rounds):
        answered = 0
        done.clear()
        begun, worked = time.perf_counter(), time.process_time()
        for _ in range(messages):
            session.post(URI, BODY, on_ack=on_ack)
        assert done.wait(60)
        seconds.append((time.perf_counter() - begun, time.process_time() - worked))
    session.stop()
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
