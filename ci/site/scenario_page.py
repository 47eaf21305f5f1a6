"""The page of all scenarios, from the catalogue."""

from __future__ import annotations

from conformance.suite.catalogue import families
from conformance.suite.load import all_scenarios, of_family
from conformance.suite.requirement import Family, Requirement
from conformance.suite.scenario import Scenario

INTRODUCTION = """\
# Scenarios

What a client is judged by.

**MUST** follows from a sentence of the protocol's document, or the client breaks correctness or crashes
without it; **SHOULD** is good practice that real clients were hurt by; **MAY** is an optional feature.
`fakebrokers explain ID` says more about one of them.
"""


def page() -> str:
    """All scenarios, by family and section."""
    rows: dict[str, list[Scenario]] = {}
    for item in all_scenarios():
        rows.setdefault(item.id, []).append(item)
    parts = [INTRODUCTION]
    for family in families().values():
        mine = [each for each in of_family(family.family) if each.id in rows]
        if mine:
            parts.append(_family(family, mine, rows))
    return "\n".join(parts)


def _family(family: Family, mine: list[Requirement], rows: dict[str, list[Scenario]]) -> str:
    lines = [f"## {family.family}: {family.title}", "", "| basis | |", "| --- | --- |"]
    lines += [f"| {code} | {_cell(text)} |" for code, text in family.basis.items()]
    for section in family.sections:
        chosen = [each for each in mine if each.section == section.id]
        if not chosen:
            continue
        lines += ["", f"### {section.id} {section.title}", ""]
        lines += [
            "| id | level | scenario | what is done | what the client must do |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [_row(each, rows[each.id]) for each in chosen]
    return "\n".join([*lines, *_protocols(family, mine), ""])


def _protocols(family: Family, mine: list[Requirement]) -> list[str]:
    """Of a family for several protocols: what is special to each of them."""
    lines = []
    for protocol, covered in family.protocols.items():
        reported = {
            **covered.remarks,
            **{name: f"not for it: {why}" for name, why in covered.without.items()},
        }
        lines += ["", f"### {family.family} for {protocol}", "", "| id | |", "| --- | --- |"]
        lines += [f"| {each.id} | {_cell(reported[each.id])} |" for each in mine if each.id in reported]
    return lines


def _row(item: Requirement, found: list[Scenario]) -> str:
    needs = sorted({need for each in found for need in each.needs})
    title = item.title + (f" (needs {', '.join(f'`{need}`' for need in needs)})" if needs else "")
    cells = [item.id, item.level, title, item.fault, f"{item.passes} *({', '.join(item.basis)})*"]
    return "| " + " | ".join(_cell(text) for text in cells) + " |"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
