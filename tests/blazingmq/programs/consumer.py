"""Prints the next messages of a queue with their properties, confirms each, and ends after that many.

python consumer.py bmq://bmq.test.mem.priority/words 2
"""

from __future__ import annotations

import sys
import threading

import blazingmq
from blazingmq.session_events import SessionEvent


def on_session_event(event: SessionEvent) -> None:
    print("session:", event, file=sys.stderr)


class Printer:
    """The callback for messages; `done` is set after the last one."""

    def __init__(self, messages: int) -> None:
        self.left = messages
        self.done = threading.Event()

    def on_message(self, message: blazingmq.Message, handle: blazingmq.MessageHandle) -> None:
        properties = dict(sorted(message.properties.items()))
        print(message.data.decode(), properties, flush=True)
        handle.confirm()
        self.left -= 1
        if not self.left:
            self.done.set()


def main(uri: str, messages: str) -> None:
    printer = Printer(int(messages))
    with blazingmq.Session(on_session_event, on_message=printer.on_message) as session:
        options = blazingmq.QueueOptions(max_unconfirmed_messages=10, consumer_priority=1)
        session.open_queue(uri, read=True, options=options)
        print("ready", flush=True)
        printer.done.wait(60)
        session.configure_queue(uri, blazingmq.QueueOptions(0, 0, 0))
        session.close_queue(uri)


if __name__ == "__main__":
    main(*sys.argv[1:])
