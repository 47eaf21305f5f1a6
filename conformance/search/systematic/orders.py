"""Arguments of ops at the ends of their ranges: what an application may ask for, a client has to bear.

A body goes to another place on the wire with other arguments besides it (alone, among many, packed with
others, in parts, with properties), so each of these gets every body.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.run.case import Case
from conformance.run.specs import ArgumentChange

NUMBERS: Mapping[str, tuple[int, ...]] = {
    "zero": (0,),
    "one": (1,),
    "small": (255, 256),
    "word": (32_767, 32_768, 65_535, 65_536),
    "large": (2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1),
    "beyond": (-1, 2**64),
}
TEXTS: Mapping[str, tuple[str, ...]] = {
    "blank": ("",),
    "unknown": ("nowhere",),
    "umlauts": ("äöü€",),
    "long": ("x" * 255, "x" * 256, "ü" * 128),
    "too long": ("x" * 65_535, "x" * 65_536),
}
BODIES: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "empty": ({"text": ""},),
    "one byte": ({"b64": "AA=="},),
    "no text": ({"b64": "/wD+gA=="},),
    "long": tuple({"gen": "rand", "seed": size, "len": size} for size in (255, 256, 65_535, 65_536)),
}
#: What ties ops together, or is told apart by invariants: those are not changed.
FIXED = (
    *("session", "sub", "endpoints", "body", "messages", "wait", "on_message", "callback", "times", "which"),
    *("subentry", "type", "user", "password", "vhost", "drain", "key", "value"),
    *("base", "project", "start_delay_ms", "request_timeout_ms"),
)
FEW_OF_A_KIND = 2  #: ops of the same name in a base


def orders(case: Case) -> Iterator[tuple[str, str, ArgumentChange]]:
    """Changes of the ops of a run: what is changed, its class, and the change."""
    yield from _with_other_arguments(case)
    yield from other_bodies(case)


def other_bodies(case: Case) -> Iterator[tuple[str, str, ArgumentChange]]:
    """Bodies at their ends, once for each way in which a base carries one; see `orders`."""
    tried: set[str] = set()
    for number, done in enumerate(case.ops, 1):
        for path, value in () if done.phase else _bodies(done.args):
            what = " ".join([done.op, *sorted(set(done.args) - {"session"}), re.sub(r"\.\d+", "", path)])
            if what in tried:
                continue
            tried.add(what)
            for word, values in BODIES.items():
                for new in values:
                    if new != value:
                        yield what, word, ArgumentChange(number, path, new)


def _bodies(args: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Where an op has bodies, in the middle of several, or of the parts of one."""
    for path, value in [("body", args.get("body")), *_of_many(args)]:
        if isinstance(value, list) and value:
            yield f"{path}.{len(value) // 2}", value[len(value) // 2]
        elif value is not None:
            yield path, value


def _of_many(args: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    messages = args.get("messages") or ()
    if messages:
        yield f"messages.{len(messages) // 2}.body", messages[len(messages) // 2].get("body")


def _with_other_arguments(case: Case) -> Iterator[tuple[str, str, ArgumentChange]]:
    seen: dict[tuple[str, str], int] = {}
    for number, done in enumerate(case.ops, 1):
        for path, value in _leaves(done.args, (*FIXED, *case.traits.faults.fixed)):
            key = done.op, path
            seen[key] = seen.get(key, 0) + 1
            if seen[key] > FEW_OF_A_KIND or done.phase:
                continue
            pool: Mapping[str, tuple[Any, ...]] = TEXTS if isinstance(value, str) else NUMBERS
            for word, values in pool.items():
                for new in values:
                    if new != value:
                        yield f"{done.op} {path}", word, ArgumentChange(number, path, new)


def _leaves(args: Mapping[str, Any], fixed: tuple[str, ...], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in args.items():
        where = f"{path}.{name}" if path else name
        if name in fixed and not path.endswith("offset"):
            continue
        if isinstance(value, Mapping):
            yield from _leaves(value, fixed, where)
        elif isinstance(value, int | str) and not isinstance(value, bool) and name != "type":
            yield where, value
