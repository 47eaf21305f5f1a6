"""A run as a story: what was done to the broker and what was asked of the client, in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

import msgspec

from conformance.printing import plain
from conformance.suite.deeds import Deed
from conformance.suite.judgement import Judgement

#: Ops of the suite itself.
_UNTOLD = frozenset(("echo", "hello", "reset", "shutdown", "state", "stats"))
_ARGUMENTS_MAX = 150
_ANSWER_MAX = 200
_DEED_MAX = 400


class Asked(msgspec.Struct, frozen=True):
    """An op that the client was asked for.

    Attributes:
        at_s: On the clock of the runner's loop.
        text: Op and arguments.
        answer: What came of it.
        is_failure: It ended with an error, or not at all.
    """

    at_s: float
    text: str
    answer: str
    is_failure: bool = False


def story(judgement: Judgement) -> list[Deed | Asked]:
    """Both in the order of time."""
    return sorted([*judgement.deeds, *_asked(judgement.transcript)], key=lambda each: each.at_s)


def reported(steps: Iterable[Deed | Asked]) -> list[str]:
    """One line for each step that can be written down; what comes several times in a row is written once."""
    steps = [each for each in steps if one_line(each)]
    lines = []
    for (who, text), same in groupby(steps, key=lambda each: (type(each), one_line(each))):
        found = list(same)
        times = f" (x {len(found)})" if len(found) > 1 else ""
        at_s = found[0].at_s - steps[0].at_s
        lines.append(f"{at_s:8.3f}  {'client' if who is Asked else 'fake':<6}  {text}{times}")
    return lines


def failures(judgement: Judgement) -> tuple[str, ...]:
    """What the client answered to ops that did not work out, each once."""
    asked = [each for each in _asked(judgement.transcript) if each.is_failure]
    return tuple(dict.fromkeys(f"{each.text.partition(' ')[0]}: {each.answer}" for each in asked))


def one_line(step: Deed | Asked) -> str:
    """The step without its time, in printable characters."""
    if isinstance(step, Asked):
        return f"{step.text} -> {step.answer}"
    if step.plan:
        return "; ".join(map(fault_in_words, step.plan["faults"]))
    return _short(step.text.removeprefix("broker."), _DEED_MAX)


def fault_in_words(row: Mapping[str, Any]) -> str:
    """A fault of a plan in words: what is done, and when."""
    effects = row["effect"] if isinstance(row["effect"], list) else [row["effect"]]
    done = " and ".join(
        " ".join([each["type"], *(f"{k}={v!a}" for k, v in each.items() if k != "type")]) for each in effects
    )
    when = ", ".join(f"{key}={value!a}" for key, value in row["match"].items())
    return f"fault {row.get('name', '')!a}: {done}" + (f", where {when}" if when else "")


def _asked(transcript: Iterable[bytes]) -> list[Asked]:
    entries = [msgspec.json.decode(raw) for raw in transcript]
    answers = {
        entry["line"]["id"]: entry["line"]
        for entry in entries
        if entry["way"] == "in" and isinstance(entry["line"], dict) and "id" in entry["line"]
        if "event" not in entry["line"]
    }
    return [
        Asked(entry["at_ns"] / 1e9, _op(entry["line"]), _answer(answer), not (answer or {}).get("ok"))
        for entry in entries
        if entry["way"] == "out" and entry["line"]["op"] not in _UNTOLD
        for answer in [answers.get(entry["line"]["id"])]
    ]


def _op(line: Mapping[str, Any]) -> str:
    reported = {k: v for k, v in line.get("args", {}).items() if k != "endpoints" and v not in (None, {}, [])}
    arguments = ", ".join(f"{k}={_value(v)}" for k, v in reported.items())
    limit = line.get("timeout_ms")
    within = f" within {limit / 1000:g} s" if limit else ""
    return plain(f"{line['op']} {_short(arguments, _ARGUMENTS_MAX)}{within}")


def _value(value: Any) -> str:
    """A body without its wrapping, else as it is."""
    if isinstance(value, dict) and len(value) == 1 and ("text" in value or "b64" in value):
        (value,) = value.values()
    return ascii(value)


def _answer(answer: Any) -> str:
    """An answer in few words, whatever it is."""
    if answer is None:
        return "no answer"
    if answer.get("ok"):
        result = answer.get("result")
        return plain(str(result["outcome"])) if isinstance(result, dict) and "outcome" in result else "ok"
    error = answer.get("error")
    if not isinstance(error, dict):
        return plain(f"an error that is none: {error!r}"[:_ANSWER_MAX])
    code = "" if error.get("code") is None else f" {error['code']}"
    text = f"{error.get('kind', 'failed')}{code}: {error.get('text', '')}"
    return _short(plain(text), _ANSWER_MAX)


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."
