"""What one conformance run of one client found, as values and as ``results.json``.

The runner writes it, gate and report read it. ``results.schema.json`` beside this file says the same for
other languages. Adding a member with a default keeps the version; anything else needs a new one and a
converter in `load`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError
from fakebrokers.files import json_of
from fakebrokers.schemas import DIALECT, components

RESULTS_VERSION = 1

ON_VIRTUAL_TIME = "on virtual time"  #: how a row was judged

#: Between the sentences of a source, each of which begins with its code; a sentence may hold a semicolon.
_CODED = re.compile(r";\s+(?=[A-Z][A-Za-z0-9.-]*: )")

Level = Literal["MUST", "SHOULD", "MAY"]


class Verdict(StrEnum):
    """How a scenario ended."""

    PASS = "pass"  #: every criterion is met
    NON_STRICT = "non-strict"  #: differs in a way that the criteria list as tolerated
    FAIL = "fail"  #: a criterion is violated; see the tags for hangs and crashes
    UNSUPPORTED = "skipped: unsupported"  #: the adapter lacks a capability that is needed
    PROFILE = "skipped: profile"  #: not for these roles, this variant of the wire, or this profile
    INCONCLUSIVE = "inconclusive"  #: the requirement was never exercised
    HARNESS_ERROR = "harness error"  #: fake, runner or adapter failed; says nothing of the client


class Named(Protocol):
    """What has the id and the variant of a result."""

    @property
    def id(self) -> str: ...

    @property
    def variant(self) -> str: ...


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One arrow of a sequence diagram.

    Attributes:
        t: Seconds since the scenario began.
        dir: ``in`` is client to broker, ``out`` broker to client; empty for what is no frame.
        kind: The protocol's name of the frame, or of the state (``fin``, ``accepted`` ...).
        label: Keys, status and the like; a few words.
        fault: Names of the faults that touched it; empty if none did.
        connection: ``c1``, ``c2`` ...
        lost: It never arrived on the other side.
    """

    t: float
    dir: Literal["in", "out", ""]
    kind: str
    label: str = ""
    fault: str = ""
    connection: str = ""
    lost: bool = False


class RowResult(msgspec.Struct, frozen=True):
    """The verdict on one scenario. Its key is (`id`, `protocol`, `variant`).

    Attributes:
        variant: Transporter, profile or server version; empty if there is none.
        criterion: Id of the criterion that decided, within the scenario; empty for a pass.
        cause: Of a known failure, the root cause in the expectation file: rows with the same one are one
            defect.
        tags: ``hang``, ``crashed``, ``adapter`` (its adapter broke the protocol), ``flaky``, ``expected`` ...
        seconds: Wall time.
        reason: One sentence: why it is no plain pass.
        basis: Codes of the requirements, such as ``R7``.
        requirement: The requirement, as one sentence.
        source: The sentence of the specification that it comes from, and where it is written.
        acceptable: Every outcome that would have passed.
        actual: What happened instead, or which of them it was.
        fault: What is done to the client, as one sentence.
        adapter: What went wrong in the adapter itself (broken lines, its end, its last words, its errors).
        story: What was done to the broker and asked of the client, one line each.
        began_at: Seconds since the epoch; 0 if it was not run.
        by_hand: Frames and states that the script said itself, with their codes, one line each.
        diagram: The frames around the verdict.
        journal: Lines of the wire journal around the verdict.
        plan: The fault plan, as in a plan file.
        replay: The command that repeats exactly this.
        reproducer: A pytest file that shows the same without this suite; empty if there is none.
        run: Name of the run in the journal folder; empty if none was written.
        revision: Of the scenario; raised when its criteria change.
        how: Of a client that can be judged on virtual time: whether it was, or why a process had to say so,
            with what virtual time has shown. Empty of all other clients.
    """

    id: str
    protocol: str
    variant: str
    level: Level
    verdict: Verdict
    title: str = ""
    criterion: str = ""
    cause: str = ""
    tags: tuple[str, ...] = ()
    seconds: float = 0.0
    reason: str = ""
    basis: tuple[str, ...] = ()
    requirement: str = ""
    source: str = ""
    acceptable: tuple[str, ...] = ()
    actual: str = ""
    diagram: tuple[Step, ...] = ()
    journal: tuple[str, ...] = ()
    plan: dict[str, Any] = {}
    replay: str = ""
    reproducer: str = ""
    run: str = ""
    revision: int = 1
    fault: str = ""
    adapter: tuple[str, ...] = ()
    story: tuple[str, ...] = ()
    began_at: float = 0.0
    by_hand: tuple[str, ...] = ()
    how: str = ""

    @property
    def sources(self) -> list[str]:
        """The sentences of `source`, each with its code."""
        return [part for part in _CODED.split(self.source) if part]

    @property
    def key(self) -> tuple[str, str, str]:
        """What names it in expectation files and baselines."""
        return self.id, self.protocol, self.variant


class RuleResult(msgspec.Struct, frozen=True):
    """What a rule for all runs has found of one client, once for all rows in which it did.

    A row is decided by its own criteria alone; what a rule finds in its run is here.

    Attributes:
        rule: Its name; ``fakebrokers explain RULE`` says more.
        verdict: ``fail``, or ``inconclusive`` where the machine was too busy to judge.
        rows: Ids of the scenarios in whose runs it was violated, in the order of the results.
        reason: What happened in the first of them, one sentence.
        about: The rule, as a sentence.
        cause: Of a known violation, the root cause in the expectation file.
        tags: ``expected``.
    """

    rule: str
    protocol: str
    variant: str
    level: Level
    verdict: Verdict
    rows: tuple[str, ...]
    reason: str
    about: str = ""
    cause: str = ""
    tags: tuple[str, ...] = ()

    @property
    def is_new(self) -> bool:
        """Whether it counts against the client: violated for sure, which was not expected."""
        return self.verdict is Verdict.FAIL and "expected" not in self.tags


class Found(msgspec.Struct, frozen=True):
    """What a stage of the main job has found besides the scenarios: a violated rule.

    Attributes:
        stage: ``sweep`` or ``chaos``.
        name: The invariant or anomaly.
        detail: What happened, one sentence.
        spec: What was run, in words.
        cause: The root cause in the expectation file; empty if it is news.
        count: How many runs have shown it, of how many.
        new: Whether it counts: nobody knows it, and most runs have shown it.
        page: Its page, from the folder of the report; empty for what is known.
    """

    stage: str
    name: str
    detail: str
    spec: str
    cause: str = ""
    count: int = 1
    runs: int = 1
    new: bool = False
    page: str = ""


class Results(msgspec.Struct, frozen=True):
    """One run of one client.

    Attributes:
        seed: Of all random decisions.
        started: RFC 3339, UTC.
        seconds: Wall time.
        summary: How often each verdict came; see `summarize`.
        exit_code: As the command line returned it.
        reasons: Why that is not 0, a part of a sentence each; none for 0.
        target: URL of the real broker that it ran against, without a password; empty: the fakes.
        expected: Name of the expectation file; empty if there was none.
        complete: Whether everything was run that had been asked for; False of a run that was cut short, and
            of one that has not ended yet.
        found: What stages of the main job have found besides.
        rules: What rules for all runs have found, once each.
    """

    client: str
    client_version: str
    suite_version: str
    seed: int
    started: str
    seconds: float
    results: tuple[RowResult, ...]
    summary: dict[str, int] = {}
    exit_code: int = 0
    complete: bool = True
    version: int = RESULTS_VERSION
    reasons: tuple[str, ...] = ()
    target: str = ""
    expected: str = ""
    found: tuple[Found, ...] = ()
    rules: tuple[RuleResult, ...] = ()


def with_found(results: Results, found: Sequence[Found]) -> Results:
    """The results with what a stage has found; news of it are a failure, unless something worse has been."""
    new = [row for row in found if row.new]
    code, reasons = results.exit_code, results.reasons
    if new:
        code = code if code in (ExitCode.HARNESS, ExitCode.USAGE) else int(ExitCode.FAILED)
        reasons = (*reasons, f"{new[0].stage}: {len(new)} new finding{'s' * (len(new) != 1)}")
    return msgspec.structs.replace(results, found=(*results.found, *found), exit_code=code, reasons=reasons)


def summarize(results: Iterable[RowResult]) -> dict[str, int]:
    """How often each verdict came, in the order of `Verdict`; those that never came are left out."""
    counts = Counter(result.verdict for result in results)
    return {verdict.value: counts[verdict] for verdict in Verdict if counts[verdict]}


def alike(results: Iterable[RowResult]) -> dict[str, list[RowResult]]:
    """Failures without a known root cause by the criterion's id, where several rows share one."""
    found: dict[str, list[RowResult]] = {}
    for row in results:
        if row.verdict is Verdict.FAIL and row.criterion and not row.cause:
            found.setdefault(row.criterion, []).append(row)
    return {criterion: rows for criterion, rows in found.items() if len(rows) > 1}


def reproducer_name(row: Named) -> str:
    """The file name of a row's reproducer, unlike the others of a run."""
    words = "_".join(part for part in (row.id, row.variant) if part)
    return f"test_{re.sub('[^a-z0-9]', '_', words.lower())}.py"


def dump(results: Results) -> bytes:
    """The content of ``results.json``."""
    return msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n"


def load(path: Path) -> Results:
    """Read a ``results.json``; members that this version does not know are ignored.

    Raises:
        UsageError: It is not there, no results file, or of another version.
    """
    data = json_of(path, "a results file", object)
    version = data.get("version", RESULTS_VERSION) if isinstance(data, dict) else None
    if version != RESULTS_VERSION:
        raise UsageError(f"{path}: expected results of version {RESULTS_VERSION}, got version {version}")
    return json_of(path, "a results file", Results)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a results file; ``results.schema.json`` holds it."""
    (whole,), inside = components([Results])
    inside["Results"]["properties"]["version"]["const"] = RESULTS_VERSION
    return {"$schema": DIALECT, "title": "fakebrokers results", **whole, "$defs": inside}
