"""What becomes of messages, and where that is reported."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

Args = Mapping[str, Any]


class Settlement:
    """What becomes of messages, and where that is reported.

    Attributes:
        dropping: The ops that end a producer.
        posting: The ops that publish one message besides those of all protocols.
        producers: Of what has numbers of the client (`facts.IdUse.space`), what messages go through.
        repeats: Whether a client writes a message again that has got no answer.
        outlives: Whether a message that has left is written again until it has its answer, though its publish
            has ended.
        rises: Whether the broker takes what comes below the last id of a producer that it knows for a copy.
        redelivers: Whether a message comes again until it is settled, and clients know those that were.
    """

    dropping: ClassVar[tuple[str, ...]] = ()
    posting: ClassVar[tuple[str, ...]] = ()
    producers: ClassVar[tuple[str, ...]] = ()
    repeats: ClassVar[bool] = False
    outlives: ClassVar[bool] = False
    rises: ClassVar[bool] = False
    redelivers: ClassVar[bool] = False

    def properties_given(self, args: Args) -> Any:
        """What is to go with the body of a message, from a publish's arguments; see `Written.properties`."""
        return args.get("properties") or {}

    def place(self, args: Args, key: Any) -> tuple[Hashable, ...]:
        """Where the outcome of a message is reported, from a publish's arguments and the key it returned."""
        return args["target"], args.get("name") or "", key
