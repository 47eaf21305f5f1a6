"""The reference of fault effects: what each does, its settings, and a picture of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

from ci.site.pictures import sequence
from ci.site.shown_effects import EXAMPLES, example, talk
from fakebrokers.faults.effect import Effect
from fakebrokers.faults.registry import COMMON, effect_name
from fakebrokers.protocol import protocols

INTRODUCTION = """# Fault effects

An effect says what happens to a frame that a fault matches. What follows is made from the code that runs: the
text is that of the effects, and each picture is the journal of a fake that had the fault above it.

A client publishes five messages, 100 ms apart; time runs down. Red is what the fault touched, a cross is a
frame that never arrived, and each blue dot is a write that reached the client.

How a fault chooses its frames (`role`, `nth`, `where` ...) is told by [Match](api/faults.md).
"""


def page() -> str:
    """The page of all effects, in Markdown."""
    parts = [INTRODUCTION, "## Effects of all protocols\n"]
    for effect in sorted(COMMON, key=effect_name):
        parts.append(_section(effect, 3))
        name = effect_name(effect)
        parts.append(f"```python\n{EXAMPLES[name]}\n```\n")
        parts.append(f"![What {name} does to a sequence](effects/{name}.svg)\n")
    for protocol in protocols():
        parts.append(f"## Effects of {protocol.name} alone\n")
        parts += [_section(effect, 3) for effect in protocol.own_effects]
    return "\n".join(parts)


def pictures() -> Iterator[tuple[str, str]]:
    """Name of an effect and its picture (SVG)."""
    for name in EXAMPLES:
        yield name, sequence(talk(example(name)), f"what {name} does to a sequence")


def _section(effect: type[Effect], level: int) -> str:
    text, settings = described(effect)
    lines = [f"{'#' * level} {effect_name(effect)}\n", f"{text}\n"]
    lines.append(f"Usually *{effect.realism}*{_limits(effect)}.\n")
    if settings:
        lines += ["| setting | |", "| --- | --- |"]
        lines += [f"| `{name}` | {about} |" for name, about in settings.items()]
        lines.append("")
    return "\n".join(lines)


def described(effect: type[Effect]) -> tuple[str, dict[str, str]]:
    """The text of an effect, and its settings, from the docstring."""
    text, _, attributes = cleandoc(effect.__doc__ or "").partition("\nAttributes:\n")
    found = re.findall(r"^    (\w+): (.*(?:\n     .*)*)", attributes, re.MULTILINE)
    settings = {name: _one_line(about) for name, about in found}
    for name in effect.__struct_fields__:
        settings.setdefault(name, "")
    return _one_line(text), settings


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("``", "`").replace("|", "\\|").strip()


def _limits(effect: type[Effect]) -> str:
    """Where it makes no sense."""
    limits = []
    if effect.direction:
        limits.append("frames to the client only" if effect.direction == "out" else "client's frames only")
    if effect.needs_bytes:
        limits.append("not on PZQ's wire, whose bytes a library owns")
    if effect.needs_broker:
        limits.append("not in a proxy")
    if effect.per_run:
        limits.append("`nth` counts in the whole run")
    return "; " + "; ".join(limits) if limits else ""
