"""What a client may do besides what every client does: words of its hello that the rules for runs go by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from conformance.clients.adapter.messages import Hello

#: The words of ``contract``, and what a client for which they are true may do.
CONTRACT: Mapping[str, str] = {
    "repeats": "it writes a request or a message again when a loss, or a lack of answers, has left it open",
    "surfaces_again": "after a loss, what the application had of an unfinished delivery may come again",
    "stores_positions": "it stores positions at the broker, or settles messages, by itself",
    "many_connections": "a session has several connections, such as one for each role or subscription",
    "pipelines": "it goes on before the server has answered what sets a connection up",
    "waits": "an op waits for the next connection, where there is none or where it was lost",
    "drains": "a close hands over first what has come",
    "own_credit": "it allows deliveries by a plan of its own, not one for each that has come",
    "drops_idle": "it ends a connection that it no longer needs without a close frame, or the answer to one",
    "leaves_dropped": "what the broker has dropped (a target that moves) it leaves to the application",
    "own_deadline": "what has no answer is given up by a time-out of its own, not by that of the application",
    "times_silence": "its time-outs are of silence: an answer that goes on coming slowly is waited for",
    "own_keys": "it reports outcomes by keys, or has names for publishers, that are not those on the wire",
    "reads_odd": "it accepts frames that are not as the protocol has them",
    "takes_existing": "to create what is there already works",
    "beats_late": "between its heartbeats twice the agreed time may pass",
    "reads_on": "after bytes that cannot be a frame it waits for more, until a time-out of its own",
    "logs_callbacks": "that a callback of the application has failed is reported in a log at most",
    "shuffles": "events may be delivered in another order than they came, as handlers run at the same time",
    "one_callback": "callbacks of all subscriptions run one after the other, so that a slow one holds up all",
    "fills_pools": "its pools get one more thread for each piece of work, until they have their size",
    "skips_damaged": "what is damaged is passed over, or delivered as far as it goes, without an error",
}
#: The member of ``contract`` that says what counts for words which are left out; true without it.
OTHERS = "others"
#: Capabilities, for what a client may do that lacks them ...
_LACKED = frozenset({"ack_timeout", "dedup", "retry"})
#: ... and that has them.
_HAD = frozenset({"lazy_subscribe"})
#: Of a client that does none of it.
STRICT: Mapping[str, bool] = dict.fromkeys(CONTRACT, False)


class Contract(NamedTuple):
    """What a client may do, by its hello.

    Attributes:
        hello: None allows everything.
    """

    hello: Hello | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """What it may do, of `CONTRACT`."""
        return tuple([word for word in CONTRACT if self.allows(word)])

    def allows(self, word: str) -> bool:
        """Whether it may do this, by a word of `CONTRACT` or a capability. What is left open is allowed."""
        if self.hello is None:
            return True
        if word in _LACKED:
            return not self.hello.can(word)
        if word in _HAD:
            return self.hello.can(word)
        return self.hello.contract.get(word, self.hello.contract.get(OTHERS, True))
