"""``fakebrokers list`` and ``explain``: what a client is judged by."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conformance.cli.completion import words_to_explain
from conformance.cli.folders import with_folders
from conformance.printing import console_for_all
from conformance.suite.catalogue import families, sections, sources
from conformance.suite.load import all_scenarios, requirement, requirements, select
from conformance.suite.requirement import Requirement
from conformance.suite.scenario import Scenario
from fakebrokers.errors import UsageError, instead_of
from fakebrokers.protocol import protocol_names

if TYPE_CHECKING:
    from conformance.rules.sentences import Rule

PROTOCOL = click.Choice(protocol_names())
ALL_RULES = "RULES"  #: what `explain` takes for all of them
LEVEL = click.Choice(["MUST", "SHOULD", "MAY"], case_sensitive=False)


@click.command("list")
@click.option("--protocol", type=PROTOCOL)
@click.option("--level", type=LEVEL, help="Only scenarios of this level.")
@with_folders
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def list_command(protocol: str | None, level: str | None, as_json: bool) -> None:
    """List the scenarios: what a client is judged by."""
    found = select(all_scenarios(), protocol=protocol, level=level, which="full") + select(
        all_scenarios(), protocol=protocol, level=level, which="soak"
    )
    if as_json:
        click.echo(json.dumps([_row(item) for item in found], indent=1))
        return
    table = Table(pad_edge=False)
    for name in ("id", "title", "level", "protocol", "needs"):
        table.add_column(name)
    for item in found:
        protocol_name = "/".join(part for part in (item.protocol, item.variant) if part)
        table.add_row(item.id, item.requirement.title, item.level, protocol_name, " ".join(item.needs))
    console_for_all().print(table)


def _row(item: Scenario) -> dict[str, object]:
    return {
        "id": item.id,
        "title": item.requirement.title,
        "level": item.level,
        "protocol": item.protocol,
        "variant": item.variant,
        "section": item.requirement.section,
        "needs": list(item.needs),
        "severity": item.requirement.severity,
    }


class About(NamedTuple):
    """What is said of a scenario, a rule, a section or a family: its parts in order, by name."""

    name: str
    title: str
    remark: str = ""
    parts: Mapping[str, str] = {}
    within: Sequence[About] = ()

    def document(self) -> dict[str, object]:
        """The same as plain values, without what there is not."""
        level, _, severity = self.remark.partition(" · severity ")
        known = {"name": self.name, "title": self.title, "level": level, "severity": severity}
        known |= {"why_level" if name == "level" else name: text for name, text in self.parts.items()}
        found: dict[str, object] = {name.replace(" ", "_"): text for name, text in known.items() if text}
        return {**found, **({"within": [each.document() for each in self.within]} if self.within else {})}


@click.command("explain")
@with_folders
@click.argument(
    "names", metavar="ID|SECTION|FAMILY|RULE...", nargs=-1, required=True, shell_complete=words_to_explain
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def explain_command(names: Sequence[str], as_json: bool) -> None:
    """Explain what scenarios or rules demand, and why.

    A section, such as RMQS-3, is explained by what each of its scenarios demands; a family, such as RMQS, by
    its sections. Rules, such as wire-legal, judge every run of every client; `rules` means all of them.
    """
    found = [_about(name) for name in names]
    if as_json:
        click.echo(json.dumps([each.document() for each in found], indent=1))
        return
    console = console_for_all()
    for number, each in enumerate(found):
        if number:
            console.print()
        _print(console, each)


def _about(name: str) -> About:
    word = name.upper()
    if word == ALL_RULES:
        return _about_all_rules()
    if word in families():
        inside = [About(section.id, section.title) for section in families()[word].sections]
        return About(word, families()[word].title, within=inside)
    if word in sections():
        found = [each for each in requirements().values() if each.section == word]
        inside = [About(each.id, each.title, each.level, {"requirement": each.passes}) for each in found]
        return About(word, sections()[word].title, within=inside)
    return _about_scenario(requirement(word)) if word in requirements() else _about_rule(_rule(name))


def _about_all_rules() -> About:
    """Each rule with its first sentence."""
    from conformance.rules.sentences import rules

    inside = [About(name, rule.sentences[0], rule.level) for name, rule in sorted(rules().items())]
    return About(ALL_RULES.lower(), "Rules that hold in every run", within=inside)


def _rule(name: str) -> Rule:
    """The rule of that name. `UsageError` if there is none, nor anything else that can be explained."""
    from conformance.rules.sentences import rules  # which takes longer to load than the catalogue

    found = rules().get(name.lower())
    if found is None:
        words = [*families(), *sections(), *requirements(), *rules()]
        raise UsageError(f"there is no scenario and no rule {name!r}{instead_of(name, words)}")
    return found


def _about_rule(rule: Rule) -> About:
    parts = {
        "requirement": "\n".join(rule.sentences),
        "why": rule.why,
        "rests on": "\n".join(rule.rests_on),
        "example": rule.example,
        "level": rule.reason,
        "applies to": ", ".join(rule.protocols or protocol_names()),
    }
    return About(rule.name, "(a rule for all runs)", rule.level, parts)


def _about_scenario(wanted: Requirement) -> About:
    """All that the catalogue says of a scenario."""
    rows = [item for item in all_scenarios() if item.id == wanted.id]
    parts = {
        "requirement": wanted.passes,
        "fault": wanted.fault,
        "source": "\n".join(sources(wanted)),
        "applies to": ", ".join(sorted({item.protocol for item in rows})),
        "remarks": "\n".join(_of_protocols(wanted, "remarks")),
        "not for": "\n".join(_of_protocols(wanted, "without")),
        "profile": wanted.profile,
        "needs": ", ".join(sorted({need for item in rows for need in item.needs} | set(wanted.needs))),
        "roles": ", ".join(sorted({role for item in rows for role in item.roles})),
        "seen in": "\n".join(wanted.seen),
        "note": families()[wanted.family].note,
    }
    return About(wanted.id, wanted.title, f"{wanted.level} · severity {wanted.severity}", parts)


def _print(console: Console, about: About) -> None:
    _heading(console, about)
    for name, text in about.parts.items():
        for number, line in enumerate(text.splitlines()):
            console.print(f"{name if not number else '':<12} {line}", markup=False)
    for each in about.within:
        if not each.parts:
            console.print(f"{each.name} {each.title}", markup=False)
            continue
        console.print()
        _heading(console, each)
        console.print(each.parts["requirement"], markup=False)


def _heading(console: Console, about: About) -> None:
    remark = f"  [dim]{about.remark}[/]" if about.remark else ""
    console.print(f"[bold]{about.name}[/] {escape(about.title)}{remark}")


def _of_protocols(item: Requirement, what: str) -> list[str]:
    """What a family for several protocols says of each of them on one requirement."""
    covered = families()[item.family].protocols
    said = {protocol: getattr(each, what).get(item.id) for protocol, each in covered.items()}
    return [f"{protocol}: {text}" for protocol, text in said.items() if text]
