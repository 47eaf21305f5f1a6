"""The page of the rules for all runs, written from their docstrings."""

from __future__ import annotations

import re

from conformance.rules.sentences import Rule, rules

_FILE = re.compile(r"\b((?:docs|conformance)/[\w/-]+\.md)")

INTRODUCTION = """\
# Rules for all runs

Every run of every client is judged by these rules, besides what its scenario asks for: in `fakebrokers
conform`, in the [sweep](../sweep.md) and in [chaos](../chaos.md). What they find is reported once for a
client, with the scenarios in whose runs it was: a violated MUST ends `conform` with exit code 1, a SHOULD
does so with `--strict`. Where clients differ by design, the [contract](adapter-protocol.md) of the adapter
says what this one may do.

`fakebrokers explain NAME` prints one of them. A name never changes; a file for `--expect` knows a violation
by it (`rule = "wire-legal"`).
"""


def page() -> str:
    """All rules, in alphabetical order."""
    return "\n".join([INTRODUCTION, *(line for rule in rules().values() for line in _section(rule))])


def _section(rule: Rule) -> list[str]:
    rows = [
        ("Why", [rule.why]),
        ("Rests on", [_FILE.sub(r"`\1`", each) for each in rule.rests_on]),
        ("Example", [f"*{rule.example}*"]),
        ("Level", [rule.reason or rule.level]),
        ("Judges", [", ".join(rule.protocols or ("clients of all protocols",))]),
    ]
    lines = [f"## {rule.name}", "", *(f"{each}\n" for each in rule.sentences)]
    for name, texts in rows:
        if len(texts) == 1:
            lines.append(f"* **{name}**: {texts[0]}")
        else:
            lines += [f"* **{name}**:", *(f"    * {each}" for each in texts)]
    return [*lines, ""]
