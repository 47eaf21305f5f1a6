"""From a judgement to what reports, files and people get."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from conformance.results import RowResult, Step, Verdict
from conformance.suite import outside
from conformance.suite.catalogue import fault_of, sources
from conformance.suite.contract import BY_HAND
from conformance.suite.judge import Judgement
from conformance.suite.reproducer import python_client, reproducer
from conformance.suite.scenario import Scenario
from conformance.suite.story import failures, reported, story
from fakebrokers.journal import Record, Tap

DIAGRAM_STEPS = 40
JOURNAL_LINES = 60
STORY_LINES = 60
BY_HAND_LINES = 24


def to_result(
    judgement: Judgement, *, client: str, seed: int, who: Sequence[str] = (), target: str | None = None
) -> RowResult:
    """Everything that is known about one scenario's run.

    Args:
        client: Its name in reports.
        who: The options that name it on the command line; default: the bundled client of that name.
        target: URL of the real broker, if it ran against one.
    """
    item = judgement.scenario
    wanted = item.requirement
    failed = judgement.verdict in (Verdict.FAIL, Verdict.HARNESS_ERROR)
    who = who or ("--client", client)
    is_bundled = who[0] == "--client"
    result = RowResult(
        id=item.id,
        protocol=item.protocol,
        variant=item.variant,
        level=wanted.level,
        verdict=judgement.verdict,
        title=wanted.title,
        tags=judgement.tags,
        seconds=round(judgement.seconds, 3),
        reason=judgement.reason,
        basis=wanted.basis,
        requirement=wanted.passes,
        source="; ".join(sources(wanted)),
        acceptable=tuple(_outcomes(wanted.passes)),
        actual=judgement.actual or "; ".join((*judgement.tolerated, *judgement.notes)),
        diagram=tuple(diagram(judgement.records)),
        journal=tuple(str(r) for r in judgement.records[-JOURNAL_LINES:]),
        plan={**judgement.plan, **({"proxy": judgement.proxy_plan} if judgement.proxy_plan else {})},
        replay=replay_command(item, who=who, seed=seed, target=target),
        reproducer=(
            reproducer(judgement, python_client(who[1]) if is_bundled else None, who=who, seed=seed)
            if failed
            else ""
        ),
        revision=item.revision,
        run=judgement.run,
        fault=fault_of(wanted, item.protocol),
        adapter=_adapter(judgement),
        story=tuple(reported(story(judgement))[:STORY_LINES])
        if judgement.verdict is not Verdict.PASS
        else (),
        began_at=round(judgement.began_at, 3),
        by_hand=tuple(by_hand(judgement.records)),
        how=judgement.how,
    )
    return msgspec.convert(_readable(msgspec.to_builtins(result)), RowResult)


def _readable(value: Any) -> Any:
    """The same without bytes that are no text, which frames may carry on purpose; files cannot hold them."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_readable(key): _readable(inner) for key, inner in value.items()}
    return [_readable(inner) for inner in value] if isinstance(value, list | tuple) else value


def _outcomes(passes: str) -> list[str]:
    """What would have passed, with a remark where that is not quite what is required."""
    parts = [part.strip() for part in passes.split(";") if part.strip()]
    return [part for part in parts if not part.lower().startswith("fail:")]


def _adapter(judgement: Judgement) -> tuple[str, ...]:
    """What went wrong in the adapter; where nothing could be judged, also what it answered to ops."""
    shown = () if judgement.verdict is Verdict.FAIL else failures(judgement)
    if judgement.verdict in (Verdict.PASS, Verdict.NON_STRICT):
        return ()
    return tuple(dict.fromkeys((*judgement.adapter, *shown)))


def replay_command(
    item: Scenario,
    *,
    who: Sequence[str],
    seed: int,
    target: str | None = None,
    folder: Path | None = None,
) -> str:
    """The command that runs exactly this again, quoted for a shell, in one line.

    Args:
        folder: Where it will be run, if not here.
    """
    words = ["fakebrokers", "conform", *who, "--protocol", item.protocol]
    words += ["--variant", item.variant] if item.variant else []
    words += ["--target", without_password(target)] if target else []
    own = outside.folder_of(item.script.__module__)
    words += ["--scenarios", _short(own.path, folder or Path.cwd())] if own else []
    return shlex.join([*words, "--seed", str(seed), item.id])


def _short(path: Path, here: Path) -> str:
    """A path as one would type it in a folder."""
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def without_password(url: str) -> str:
    """The URL as reports may show it; `guest` is everybody's."""
    return re.sub(r"(?<=:)(?!guest@)[^:/@]+(?=@)", "***", url)


def diagram(records: Sequence[Record]) -> list[Step]:
    """The frames as arrows: those around the faults, and the last ones."""
    steps = _steps(records)
    if len(steps) <= DIAGRAM_STEPS:
        return steps
    marked = [i for i, step in enumerate(steps) if step.fault]
    kept = {i + d for i in marked[:5] for d in range(-4, 5)} | set(range(len(steps) - 20, len(steps)))
    return [step for i, step in enumerate(steps) if i in kept][-DIAGRAM_STEPS:]


def by_hand(records: Sequence[Record]) -> list[str]:
    """What the script said itself, one line each; the same several times in a row is one line."""
    said = [_said(step) for step in _steps(records) if BY_HAND in step.fault]
    lines = []
    for text, same in groupby(said):
        times = len(list(same))
        lines.append(text + (f" (x {times})" if times > 1 else ""))
    more = len(lines) - BY_HAND_LINES
    return [*lines[:BY_HAND_LINES], f"... and {more} more"] if more > 0 else lines


def _said(step: Step) -> str:
    detail = f" ({step.label})" if step.label else ""
    return f"{step.kind}{detail} on {step.connection}" if step.connection else f"{step.kind}{detail}"


def _steps(records: Sequence[Record]) -> list[Step]:
    """Every frame once, where it shows what became of it."""
    newest = {_frame(r): r.seq for r in records}
    steps = []
    for record in records:
        lost = _is_lost(record, newest)
        is_shown_elsewhere = (
            bool(record.fault) and not lost
            if record.tap in (Tap.SAID, Tap.HEARD)
            else record.tap is Tap.SENT and not record.fault
        )
        if not is_shown_elsewhere:
            steps.append(_step(record, lost))
    return steps


def _frame(record: Record, tap: Tap | None = None) -> tuple[Any, ...]:
    """What a frame is known by at a place in the pipe."""
    return (tap or record.tap, record.kind, record.connection, record.keys)


def _is_lost(record: Record, newest: Mapping[Any, int]) -> bool:
    """Whether a frame was said and never sent, or received and never heard."""
    if not record.fault or record.tap not in (Tap.SAID, Tap.RECEIVED):
        return False
    other = Tap.SENT if record.tap is Tap.SAID else Tap.HEARD
    return newest.get(_frame(record, other), 0) < record.seq


def _step(record: Record, lost: bool) -> Step:
    direction = record.tap.direction
    label = ", ".join(
        [
            *(str(k) for k in record.keys[:3]),
            *(["..."] if len(record.keys) > 3 else []),
            *_codes(record),
            *([_note(record)] if record.note else []),
        ]
    )
    return Step(
        t=round(record.at, 4),
        dir=direction if direction in ("in", "out") else "",  # type: ignore[arg-type]
        kind=record.kind,
        label=label,
        fault=record.fault,
        connection=record.connection,
        lost=lost,
    )


def _note(record: Record) -> str:
    """The note of a state, without the state's own name."""
    return record.note.removeprefix(record.kind).strip()


def _codes(record: Record) -> list[str]:
    """The wire's result codes: the frame's own, or those of its items."""
    codes = [record.status]
    if record.status is None and record.frame is not None and record.frame.spec.items is not None:
        items = record.frame.spec.items
        codes = [items.status(record.frame, index) for index in range(len(record.keys))]
    return [f"code {code}" for code in dict.fromkeys(codes) if code is not None]
