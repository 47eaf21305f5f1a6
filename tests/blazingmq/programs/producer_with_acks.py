"""Posts the words of its command line, with properties if asked for, and prints what became of each.

python producer_with_acks.py bmq://bmq.test.mem.priority/words [--properties] hello world
"""

from __future__ import annotations

import sys
import threading
from functools import partial

import blazingmq
from blazingmq.session_events import SessionEvent


def on_session_event(event: SessionEvent) -> None:
    print("session:", event, file=sys.stderr)


def main(uri: str, *words: str) -> None:
    with_properties = words[:1] == ("--properties",)
    words = words[1:] if with_properties else words
    pending = len(words)
    all_answered = threading.Event()

    def on_ack(word: str, ack: blazingmq.Ack) -> None:
        nonlocal pending
        print(f"{word}: {ack.status.name}", flush=True)
        pending -= 1
        if not pending:
            all_answered.set()

    with blazingmq.Session(on_session_event) as session:
        session.open_queue(uri, write=True)
        for number, word in enumerate(words):
            properties = {"word": word, "number": number, "last": word == words[-1]}
            session.post(
                uri,
                word.encode(),
                properties=properties if with_properties else None,
                property_type_overrides={"number": blazingmq.PropertyType.SHORT} if with_properties else None,
                on_ack=partial(on_ack, word),
            )
        all_answered.wait(60)
        session.close_queue(uri)


if __name__ == "__main__":
    main(*sys.argv[1:])
