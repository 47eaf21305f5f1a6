"""What readers are configured with, and what the application has ordered (docs/protocols/blazingmq.md, 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.run.facts import Facts
from conformance.run.showing import shown
from conformance.run.trace import Position

Options = Mapping[str, Any]
LONG = 200  #: of options as a sentence shows them
OPS = ("bmq.open_queue", "bmq.configure_queue")


def ordered(ops: Sequence[Any], target: str, at: Position) -> list[Options]:
    """The options that a reader of this target may have by then: those ordered last, and those whose fate
    was open at that moment, or still is."""
    found: list[Options] = []
    for done in ops:
        if done.op not in OPS or str(done.args["target"]) != target or done.begun > at:
            continue
        is_over = done.ended is not None and done.ended < at
        if is_over and done.result is not None and done.result.ok:
            found = []  # this one replaces all that was ordered before
        elif is_over and done.result is not None and done.result.word in ("refused", "invalid"):
            continue
        found.append(done.args.get("options") or {})
    return found


def other_settings(facts: Facts, ops: Sequence[Any]) -> Iterator[tuple[Position, str]]:
    """Configurations with limits that the application has not ordered, on a later connection too."""
    if len({done.args.get("session") for done in ops if done.op in OPS}) > 1:
        return
    for one in facts.configured:
        wanted = ordered(ops, one.target, one.at)
        if wanted and not any(_agree(each, one.options) for each in wanted):
            given, last = shown(one.options, LONG), shown(dict(wanted[-1]), LONG)
            yield one.at, f"{one.target} is configured with {given}, ordered was {last}"


def _agree(wanted: Options, given: Mapping[str, int]) -> bool:
    """Only what was ordered by name is compared; the rest is the library's own."""
    try:
        return all(given[name] == int(value) for name, value in wanted.items() if name in given)
    except (TypeError, ValueError):
        return True  # no number; that is refused elsewhere
