"""Posts the words of its command line, one message each, and does not ask what became of them.

python producer.py bmq://bmq.test.mem.priority/words hello world
"""

from __future__ import annotations

import sys

import blazingmq
from blazingmq.session_events import SessionEvent


def on_session_event(event: SessionEvent) -> None:
    print("session:", event, file=sys.stderr)


def main(uri: str, *words: str) -> None:
    with blazingmq.Session(on_session_event) as session:
        session.open_queue(uri, write=True)
        for word in words:
            session.post(uri, word.encode())
        session.close_queue(uri)


if __name__ == "__main__":
    main(*sys.argv[1:])
