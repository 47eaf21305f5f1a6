"""What the pages show, worked out of results, analysis and mutants."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from markupsafe import Markup

from conformance.clients.mutants.kills import known_kills
from conformance.report.charts import Chart, latency_charts
from conformance.report.diagram import sequence
from conformance.report.done import done_to
from conformance.report.gravity import GRAVITY, severity_of
from conformance.report.overview import Exit, FailureCounts, exit_of, judged_against, tally, timed
from conformance.results import Results, RowResult, RuleResult, Step, Verdict, alike, summarize
from conformance.rules.sentences import Rule
from conformance.rules.sentences import rules as all_rules
from conformance.suite.scenario import Key

#: Steps of a diagram and lines of a journal that are kept where there is nothing to explain.
PLAIN_STEPS, PLAIN_LINES = 16, 16
#: Lines of a story, letters of a line, and letters of a plan or a reproducer that the page has at most; a run
#: may have megabytes of them, and ``results.json`` has all.
STORY_LINES, LINE_MAX, TEXT_MAX = 400, 1000, 64_000

#: What a verdict looks like: sign, class and rank (the worst first).
LOOKS: Mapping[Verdict, tuple[str, str, int]] = {
    Verdict.FAIL: ("✕", "fail", 0),
    Verdict.HARNESS_ERROR: ("!", "harness", 1),
    Verdict.INCONCLUSIVE: ("?", "unsure", 2),
    Verdict.NON_STRICT: ("≈", "loose", 3),
    Verdict.PASS: ("✓", "pass", 4),
    Verdict.UNSUPPORTED: ("∅", "skip", 5),
    Verdict.PROFILE: ("·", "skip", 6),
}
_LEVELS = {"MUST": 0, "SHOULD": 1, "MAY": 2}

#: One sentence for each anomaly; names and meanings as in `conformance.rules.anomalies`.
ANOMALIES: Mapping[str, str] = {
    "lost-write": "Acknowledged to the publisher, proven to be gone.",
    "duplicate": "One message sits in the log twice, or was delivered more often than sent.",
    "unseen": "Acknowledged, and no reader had it when the log was drained.",
    "nonmonotonic-poll": "A reader went back, or got a message twice, without having started again.",
    "poll-skip": "A reader jumped over messages that are there.",
    "G1a": "A message arrived although sending it had surely failed.",
    "phantom-confirm": "The client counts a publish as confirmed; the confirm never left the fake.",
    "missed-heartbeat-ignored": "The fake was silent for longer than agreed, and the client did not mind.",
    "stuck-request": "A request had not ended in any way when the run did.",
}


class Cell(msgspec.Struct, frozen=True):
    """One client's result on one scenario."""

    client: str
    result: RowResult
    sign: str
    look: str
    diagram: Markup
    journal: tuple[tuple[str, bool], ...]  #: lines, and whether a fault touched them
    plan: str
    anomalies: tuple[Mapping[str, Any], ...] = ()
    folder: str = ""  #: of the client's own results, where there are several clients
    done: tuple[str, ...] = ()  #: what was done to the client, a line each
    story: tuple[str, ...] = ()
    reproducer: str = ""

    @property
    def wanted(self) -> str:
        """The criterion that decided, in words; "" where the reason is something else."""
        return self._said[0]

    @property
    def remark(self) -> str:
        """What the reason says besides the criterion and what happened."""
        return self._said[1]

    @property
    def _said(self) -> tuple[str, str]:
        row = self.result
        wanted, found, remark = row.reason.partition(f": {row.actual}")
        return (wanted, remark.strip(" []")) if found and row.actual else ("", "")


class ScenarioRow(msgspec.Struct, frozen=True):
    """One scenario: what it asks, and each client's result (None where it was not run)."""

    anchor: str
    scenario: RowResult
    cells: tuple[Cell | None, ...]
    worst: str
    killed_by: tuple[str, ...] = ()


class ProtocolSection(msgspec.Struct, frozen=True):
    """The scenarios of one protocol."""

    protocol: str
    clients: tuple[str, ...]
    rows: tuple[ScenarioRow, ...]


class Cause(msgspec.Struct, frozen=True):
    """One root cause out of an expectation file, and every result that it explains; "" for the rest.

    Attributes:
        criterion: What the results without a known cause have in common; "" for the rest of them.
    """

    text: str
    findings: tuple[tuple[str, Cell], ...]  #: anchor of the scenario, result
    criterion: str = ""


class BrokenRule(msgspec.Struct, frozen=True):
    """What a rule for all runs has found of a client, with the anchors of the scenarios that show it.

    Attributes:
        rule: The rule, explained; None if this version of the suite does not know it.
    """

    result: RuleResult
    rule: Rule | None
    sign: str
    look: str
    rows: tuple[tuple[str, str], ...]  #: anchor, id


class ReportedClient(msgspec.Struct, frozen=True):
    """One client in one version, over all its runs."""

    name: str
    library: str
    version: str
    counts: tuple[tuple[str, str, str, int], ...]  #: verdict, sign, class, how often
    total: int
    must_failed: int
    verdict: str
    look: str
    causes: tuple[Cause, ...]  #: the gravest first; at the end what has no cause yet
    tally: FailureCounts
    exits: tuple[Exit, ...]
    rules: tuple[BrokenRule, ...] = ()
    timed: str = ""  #: how its rows were judged, where that differs

    @property
    def found(self) -> int:
        """How many results are not a plain pass."""
        return len(self.rules) + sum(len(cause.findings) for cause in self.causes)

    @property
    def defects(self) -> int:
        """How many root causes are known."""
        known = {cause.text for cause in self.causes} | {each.result.cause for each in self.rules}
        return len(known - {""})


class CoveredSentence(msgspec.Struct, frozen=True):
    """A sentence of a specification and what covers it."""

    code: str
    sentence: str
    protocol: str
    rows: tuple[ScenarioRow, ...]


class Page(msgspec.Struct, frozen=True):
    """All of the report."""

    title: str
    started: str
    seconds: float
    suite_version: str
    seeds: tuple[int, ...]
    clients: tuple[ReportedClient, ...]
    sections: tuple[ProtocolSection, ...]
    sources: tuple[CoveredSentence, ...]
    charts: tuple[Chart, ...] = ()
    analysis: Mapping[str, Any] | None = None
    proven: str = ""  #: where the scenarios were proven able to fail
    sentence: str = ""  #: who was judged against what

    @property
    def rows(self) -> Iterable[ScenarioRow]:
        """The scenarios of all protocols."""
        return (row for section in self.sections for row in section.rows)

    @property
    def anchors(self) -> Mapping[str, str]:
        """For each run in the journals the anchor of its scenario."""
        cells = ((row.anchor, cell) for row in self.rows for cell in row.cells if cell is not None)
        return {cell.result.run: anchor for anchor, cell in cells if cell.result.run}


def build(
    runs: Sequence[Results], analysis: Mapping[str, Any] | None, mutants: Mapping[str, Any] | None
) -> Page:
    """The report's content.

    Args:
        analysis: As in ``analysis.json``.
        mutants: As ``fakebrokers mutants --json`` prints it; without it, what the project's tests prove.
    """
    kills: Mapping[Key, tuple[str, ...]] = known_kills()
    if mutants is not None:
        kills = {
            (entry["id"], entry["protocol"], entry["variant"]): tuple(entry["killed_by"])
            for entry in mutants["scenarios"]
        }
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for finding in (analysis or {}).get("findings", ()):
        found["run", finding["run"]].append(finding)
    sections = tuple(_sections(runs, kills, found))
    return Page(
        title=", ".join(dict.fromkeys(run.client for run in runs)) or "nobody",
        started=min((run.started for run in runs), default=""),
        seconds=_seconds(runs),
        suite_version=", ".join(dict.fromkeys(run.suite_version for run in runs)),
        seeds=tuple(dict.fromkeys(run.seed for run in runs)),
        clients=tuple(_clients(runs, sections)),
        sections=sections,
        sources=tuple(_sources(sections)),
        charts=tuple(latency_charts(analysis)) if analysis else (),
        analysis=analysis,
        proven="by the project's tests" if mutants is None else "in this run",
        sentence=judged_against(runs),
    )


def _seconds(runs: Sequence[Results]) -> float:
    """From the beginning of the first run to the end of the last: clients are judged side by side."""
    try:
        begun = [datetime.fromisoformat(run.started).timestamp() for run in runs]
    except ValueError:  # whatever a file says in its place
        return sum(run.seconds for run in runs)
    ends = [start + run.seconds for start, run in zip(begun, runs, strict=True)]
    return max(ends, default=0.0) - min(begun, default=0.0)


def anchor_of(result: RowResult) -> str:
    """The address of a scenario's page in the file."""
    return _anchor(result.key)


def _anchor(key: Key) -> str:
    words = (part for part in key if part)
    return "s-" + re.sub(r"[^A-Za-z0-9.-]", "_", "--".join(words))


def client_name(run: Results) -> str:
    """Name and version of the client."""
    return f"{run.client} {run.client_version}".strip()


def _sections(
    runs: Sequence[Results],
    kills: Mapping[Key, tuple[str, ...]],
    found: Mapping[tuple[str, str], list[Mapping[str, Any]]],
) -> Iterable[ProtocolSection]:
    by_protocol: dict[str, dict[tuple[str, str, str], dict[str, Cell]]] = {}
    for run in runs:
        for result in run.results:
            cells = by_protocol.setdefault(result.protocol, {}).setdefault(result.key, {})
            cells[client_name(run)] = _cell(run, result, found.get(("run", result.run), ()))
    for protocol in sorted(by_protocol):
        clients = tuple(dict.fromkeys(name for cells in by_protocol[protocol].values() for name in cells))
        rows = []
        for key in sorted(by_protocol[protocol], key=_natural):
            cells = by_protocol[protocol][key]
            worst = min(cells.values(), key=lambda cell: LOOKS[cell.result.verdict][2])
            columns = tuple(cells.get(client) for client in clients)
            rows.append(
                ScenarioRow(anchor_of(worst.result), worst.result, columns, worst.look, kills.get(key, ()))
            )
        yield ProtocolSection(protocol, clients, tuple(rows))


def _cell(run: Results, result: RowResult, anomalies: Sequence[Mapping[str, Any]]) -> Cell:
    sign, look, _ = LOOKS[result.verdict]
    steps, lines = list(result.diagram), list(result.journal)
    if result.verdict is Verdict.PASS:
        steps, lines = _essential(steps), lines[-PLAIN_LINES:]
    plan = msgspec.json.format(msgspec.json.encode(result.plan), indent=2).decode() if result.plan else ""
    marked = tuple((_cut(line, LINE_MAX), "[fault:" in line) for line in lines)
    folder = f"{run.client}-{result.protocol}"
    name = client_name(run)
    done = tuple(done_to(result))
    return Cell(
        name,
        result,
        sign,
        look,
        sequence(steps),
        marked,
        _cut(plan),
        tuple(anomalies),
        folder,
        done,
        _story(result),
        _cut(result.reproducer),
    )


def _cut(text: str, most: int = TEXT_MAX) -> str:
    """The text, or its beginning and a word about the rest."""
    rest = len(text) - most
    return text if rest <= 0 else f"{text[:most]}\n… {rest:,} letters more, in results.json"


def _story(result: RowResult) -> tuple[str, ...]:
    lines = tuple(_cut(line, LINE_MAX) for line in result.story[:STORY_LINES])
    rest = len(result.story) - STORY_LINES
    return lines if rest <= 0 else (*lines, f"… {rest:,} lines more, in results.json")


def _essential(steps: list[Step]) -> list[Step]:
    """The last steps and what faults touched."""
    first = len(steps) - PLAIN_STEPS
    return [step for i, step in enumerate(steps) if i >= first or step.fault]


def _clients(runs: Sequence[Results], sections: Sequence[ProtocolSection]) -> Iterable[ReportedClient]:
    by_name: dict[str, list[Results]] = {}
    for run in runs:
        by_name.setdefault(client_name(run), []).append(run)
    for name, own in by_name.items():
        results = [result for run in own for result in run.results]
        rules = [rule for run in own for rule in run.rules]
        counts = tuple(
            (verdict, *LOOKS[Verdict(verdict)][:2], count) for verdict, count in summarize(results).items()
        )
        must = [r for r in results if r.level == "MUST"]
        failed = sum(r.verdict is Verdict.FAIL for r in must)
        verdict, look = _in_a_word(own, must, failed)
        findings = [
            (row.anchor, cell)
            for section in sections
            for row in section.rows
            for cell in row.cells
            if cell is not None and cell.client == name and LOOKS[cell.result.verdict][2] < 4
        ]
        findings.sort(key=lambda f: _gravity(f[1].result))
        yield ReportedClient(
            name,
            own[0].client,
            own[0].client_version,
            counts,
            len(results),
            failed,
            verdict,
            look,
            tuple(_causes(findings)),
            tally(results, rules),
            tuple(map(exit_of, own)),
            tuple(_broken(rules)),
            timed(results),
        )


def _in_a_word(own: Sequence[Results], must: Sequence[RowResult], failed: int) -> tuple[str, str]:
    """The verdict on a client, and its look; `failed` of its MUST rows have failed."""
    rules = [rule for run in own for rule in run.rules]
    violated = {r.rule for r in rules if r.level == "MUST" and r.verdict is Verdict.FAIL}
    if failed or violated:
        return _worst_words(failed, len(violated)), "fail"
    if not all(run.complete for run in own):
        return "incomplete", "unsure"
    judged = any(r.verdict in (Verdict.PASS, Verdict.NON_STRICT, Verdict.FAIL) for r in must)
    return ("conformant", "pass") if judged else ("not judged", "unsure")


def _worst_words(failed: int, violated: int) -> str:
    """How many MUST rows failed, and how many rules were violated."""
    rules = f"{violated} rule{'s' * (violated != 1)} violated"
    return ", ".join([f"{failed} MUST failed"] * bool(failed) + [rules] * bool(violated))


def _broken(rules: Sequence[RuleResult]) -> Iterable[BrokenRule]:
    """The rules that were violated, what nobody expected first."""
    explained = all_rules() if rules else {}
    for rule in sorted(rules, key=lambda r: (LOOKS[r.verdict][2], "expected" in r.tags, _LEVELS[r.level])):
        anchors = (_anchor((row, rule.protocol, rule.variant)) for row in rule.rows)
        sign, look, _ = LOOKS[rule.verdict]
        yield BrokenRule(
            rule, explained.get(rule.rule), sign, look, tuple(zip(anchors, rule.rows, strict=True))
        )


def _gravity(row: RowResult) -> tuple[int, int, int]:
    return LOOKS[row.verdict][2], GRAVITY.index(severity_of(row)), _LEVELS[row.level]


def _causes(findings: Sequence[tuple[str, Cell]]) -> list[Cause]:
    """The findings by root cause, the gravest first: many rows of one defect are one thing to repair. Where
    it is not known, those that fail by the same criterion are together.
    """
    shared = alike(cell.result for _, cell in findings)
    groups: dict[tuple[str, str], list[tuple[str, Cell]]] = defaultdict(list)
    for anchor, cell in findings:
        row = cell.result
        is_shared = row in shared.get(row.criterion, ())
        groups[row.cause, row.criterion if is_shared else ""].append((anchor, cell))

    def rank(each: tuple[str, str]) -> tuple[bool, bool, int, int]:
        gravest = min(GRAVITY.index(severity_of(cell.result)) for _, cell in groups[each])
        return not each[0], not each[1], gravest, -len(groups[each])

    order = sorted(groups, key=rank)
    return [Cause(text, tuple(groups[text, criterion]), criterion) for text, criterion in order]


def _sources(sections: Sequence[ProtocolSection]) -> Iterable[CoveredSentence]:
    """Every sentence that a scenario names, with the scenarios that rest on it."""
    covered: dict[tuple[str, str, str], list[ScenarioRow]] = {}
    for section in sections:
        for row in section.rows:
            for part in row.scenario.sources:
                code, colon, sentence = part.partition(": ")
                if not colon or " " in code:
                    code, sentence = " ".join(row.scenario.basis), part
                covered.setdefault((section.protocol, code, sentence), []).append(row)
    for (protocol, code, sentence), rows in sorted(covered.items(), key=lambda item: _natural(item[0])):
        yield CoveredSentence(code, sentence, protocol, tuple(rows))


def _natural(key: tuple[str, ...]) -> list[tuple[int, int, str]]:
    """Sorts 3.9 before 3.10."""
    pieces = re.findall(r"\d+|\D+", "\0".join(key))
    return [
        (0, int(piece), "") if piece.isdecimal() and len(piece) < 10 else (1, 0, piece) for piece in pieces
    ]
