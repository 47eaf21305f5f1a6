"""What was expected and what was got, as sentences: of long lists what is missing, and what came besides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, TypeGuard

Listed = list[Any] | tuple[Any, ...] | set[Any] | frozenset[Any]

FEW = 4  #: items of a list that is shown whole
NAMED = 5  #: items that are named of what is missing, or came besides
MOST = 300  #: characters of a value


def difference(actual: object, wanted: object) -> str:
    """How two values that should be equal differ."""
    if not _is_listed(actual) or not _is_listed(wanted) or max(len(actual), len(wanted)) <= FEW:
        return f"expected {shown(wanted)}, got {shown(actual)}"
    got, due = Counter(map(_key, actual)), Counter(map(_key, wanted))
    missing, besides = list((due - got).elements()), list((got - due).elements())
    parts = [f"expected {len(wanted)}, got {len(actual)}"]
    if missing:
        parts.append(f"{_named(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    if besides:
        again = [each for each in besides if due[each]]
        new = [each for each in besides if not due[each]]
        parts += [f"{_named(again)} came more than once"] if again else []
        parts += [f"{_named(new)} came besides"] if new else []
    if not missing and not besides and isinstance(actual, Sequence) and isinstance(wanted, Sequence):
        pairs = enumerate(zip(actual, wanted, strict=True), 1)
        at, pair = next((each for each in pairs if each[1][0] != each[1][1]), (0, ()))
        if not pair:
            return f"expected {shown(wanted)} as {type(wanted).__name__}, got it as {type(actual).__name__}"
        parts.append(f"in another order: {shown(pair[0])} came in place {at}, not {shown(pair[1])}")
    return "; ".join(parts)


def shown(value: object) -> str:
    """A value as a reader sees it: text as it is in a list of lines, a list without its brackets."""
    if _is_listed(value):
        if not value:
            return "nothing"
        if all(isinstance(each, str) for each in value):
            return _cut("; ".join(" ".join(str(each).split()) for each in value))
        if all(isinstance(each, int) for each in value):
            return _cut(", ".join(map(repr, value)))
    return _cut(repr(value))


def _is_listed(value: object) -> TypeGuard[Listed]:
    return isinstance(value, list | tuple | set | frozenset) and not hasattr(value, "_fields")


def _key(value: Any) -> Any:
    """What counts as the same item; what cannot be counted, by what it looks like."""
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def _named(items: Collection[Any]) -> str:
    named = [shown(each) for each in list(items)[:NAMED]]
    rest = len(items) - len(named)
    return ", ".join(named) + (f" and {rest} more" if rest else "")


def _cut(text: str) -> str:
    return text if len(text) <= MOST else f"{text[:MOST]} ... ({len(text)} characters)"
