"""What the kits of all languages can do, and what it is called in each; the guide has it as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Feature(NamedTuple):
    """One thing that adapters need.

    Attributes:
        what: In words.
        names: What it is called, by language, in the order of `LANGUAGES`; empty where a language has no
            thing.
    """

    what: str
    names: tuple[str, str, str, str, str]


#: Each with the place of its kit in the package ``conformance``.
LANGUAGES: Mapping[str, str] = {
    "python": "adapter/kit",
    "node": "adapters/_node/kit.mjs",
    "go": "adapter/kits/go",
    "java": "adapter/kits/java",
    "rust": "adapter/kits/rust",
}

FEATURES = (
    Feature("what hello says", ("AdapterBase", "facts", "Facts", "Facts", "facts")),
    Feature("an op", ("op", "ops", "Op", "op", "op")),
    Feature("ops begin in line order", ("receive", "receive", "Ordered", "ordered", "first_step")),
    Feature("an event", ("emit", "emit", "Emit", "emit", "emit")),
    Feature("kinds of errors", ("classify", "classify", "Classify", "classify", "Failure")),
    Feature("a failure without effect", ("definite", "definite", "Surely", "surely", "surely")),
    Feature("the name of a remote error", ("type", "type", "Named", "type", "named")),
    Feature("messages as the script wants", ("deliver", "deliver", "Deliver", "deliver", "deliver")),
    Feature("the library's subscription", ("handle", "handle", "Handle", "handle", "handle")),
    Feature("a new ref", ("next_ref", "nextRef", "NextRef", "nextRef", "next_ref")),
    Feature("what settles a message, by ref", ("native_of", "nativeOf", "Native", "nativeOf", "native")),
    Feature("parts of a body", ("body_parts", "bodyParts", "Body", "parts", "body_parts")),
    Feature("a message of several parts", ("report_body", "reportBody", "Parts", "report", "deliver_parts")),
    Feature("a key of the script", ("key_bytes", "keyBytes", "KeyBytes", "keyBytes", "key_bytes")),
    Feature("a key or position reported", ("report_key", "reportKey", "Key", "reportKey", "report_key")),
    Feature("integers above 2^53", ("number", "number", "Int", "number", "number")),
    Feature("callbacks that raise (exceptions)", ("trip", "trip", "Trip", "trip", "")),
    Feature("part of `reset`", ("clear", "clear", "Clear", "clear", "clear")),
    Feature("a bug of the adapter ends with 3", ("OWN_BUG", "ownBug", "ownBug", "OWN_BUG", "OWN_BUG")),
)
