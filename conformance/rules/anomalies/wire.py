"""What the client made of the wire: judged from its operations and the frames."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from conformance.rules.anomalies.anomaly import ARRIVED, GRACE_MS, LAG, LEFT, NOTICED, TOLERANCE, Anomaly
from fakebrokers.core.frames import Role
from fakebrokers.journal.reader import RunLog
from fakebrokers.journal.record import Meaning, meaning_of
from fakebrokers.journal.rows import FrameRow, OpRow

#: Peer or connection, and scope.
_Place = tuple[str, str]


def stuck_request(log: RunLog) -> Iterator[Anomaly]:
    """An op that had not ended in any way when the run did; ``hang`` is the runner's word for that."""
    if not log.run.ended:
        return
    begun: dict[tuple[str, int], OpRow] = {}
    ended: set[tuple[str, int]] = set()
    for op in log.ops:
        if op.op_id is None:
            continue
        place = op.process, op.op_id
        if op.outcome == "invoke":
            begun.setdefault(place, op)
        elif op.error != "hang":
            ended.add(place)
    for place, op in begun.items():
        if place not in ended:
            yield Anomaly(
                name="stuck-request",
                run=log.run.run,
                key=op.key or "",
                value=op.value or "",
                process=op.process,
                seqs=(op.seq,),
                detail=op.f,
            )


def phantom_confirm(log: RunLog) -> Iterator[Anomaly]:
    """The client counts a publish as confirmed although the confirm never left the fake.

    Judged key by key where the client names keys that are in publish frames; besides, the client may
    not count more publishes as confirmed than confirms were sent. A confirm counts for what was published at
    its place, which is the peer (where none is reported: the connection) and the scope: another publisher may
    use the same numbers. One number may stand for a batch of messages, so that more are acknowledged than
    were published: those beyond count for nothing.
    """
    published, received = _counted(log.frames, Role.PUBLISH, ARRIVED)
    confirmed, sent = _counted(log.frames, Role.CONFIRM, LEFT)
    if not received.total():
        return
    acked = [op for op in log.ops if op.f == "publish" and op.outcome == "ok"]
    by_key: dict[str, list[OpRow]] = defaultdict(list)
    for op in acked:
        if op.wire_key in published:
            by_key[op.wire_key or ""].append(op)
    phantoms = 0
    for key, ops in by_key.items():
        true = (published[key] & confirmed[key]).total()
        unconfirmed = min(len(ops), published[key].total()) - true
        if unconfirmed > 0:
            phantoms += unconfirmed
            last = ops[-1]
            yield Anomaly(
                name="phantom-confirm",
                run=log.run.run,
                key=last.key or "",
                value=key,
                process=last.process,
                seqs=(last.seq,),
                detail=f"{len(ops)} acknowledged, {true} sent",
            )
    true = (received & sent).total()
    if min(len(acked), received.total()) - phantoms > true:
        yield Anomaly(
            name="phantom-confirm",
            run=log.run.run,
            seqs=(acked[-1].seq,),
            detail=f"{len(acked)} acknowledged, {true} sent",
        )


def _counted(
    frames: Iterable[FrameRow], role: Role, taps: tuple[str, ...]
) -> tuple[dict[str, Counter[_Place]], Counter[_Place]]:
    """How often each key turned up at each place, and how many items did."""
    by_key: dict[str, Counter[_Place]] = defaultdict(Counter)
    items: Counter[_Place] = Counter()
    for frame in frames:
        if frame.role == role and frame.tap in taps:
            place = frame.peer or frame.connection, frame.scope
            for key in _keys(frame):
                by_key[key][place] += 1
            items[place] += frame.items
    return by_key, items


def missed_heartbeat_ignored(log: RunLog) -> Iterator[Anomaly]:
    """The fake was silent on a connection for longer than agreed, and the client did not mind.

    A client has as much more time as the harness itself stood still.
    """
    if log.run.heartbeat_limit_ms is None:
        return
    lag_ms = max((row.value for row in log.metrics if row.name == LAG), default=0.0)
    budget = round((log.run.heartbeat_limit_ms * TOLERANCE + GRACE_MS + lag_ms) * 1e6)
    times = [row.t_ns for rows in (log.frames, log.ops, log.metrics) for row in rows]
    end = max(times, default=0)
    noticed = [op.t_ns for op in log.ops if op.outcome == "event" and op.f in NOTICED]
    said, ends = _said_and_ended(log)
    for connection, frames in said.items():
        for frame, following in zip_longest(frames, frames[1:]):
            if frame.role == Role.HANDSHAKE:  # nothing is agreed yet
                continue
            deadline = frame.t_ns + budget
            over = end if following is None else following.t_ns
            reactions = (*noticed, *ends[connection])
            if over > deadline and not any(frame.t_ns <= t <= deadline for t in reactions):
                yield Anomaly(
                    name="missed-heartbeat-ignored",
                    run=log.run.run,
                    key=connection,
                    seqs=(frame.seq,),
                    detail=f"silent for {(over - frame.t_ns) // 1_000_000} ms",
                )


def _said_and_ended(log: RunLog) -> tuple[dict[str, list[FrameRow]], dict[str, list[int]]]:
    """By connection, what the fake said, and when either side has ended it."""
    said: dict[str, list[FrameRow]] = defaultdict(list)
    ends: dict[str, list[int]] = defaultdict(list)
    for frame in log.frames:
        is_end = frame.tap == "state" and meaning_of(frame.kind) & Meaning.END
        if frame.tap in LEFT:
            said[frame.connection].append(frame)
        elif is_end or (frame.direction == "in" and frame.role == Role.CLOSE):
            ends[frame.connection].append(frame.t_ns)
    return said, ends


def _keys(frame: FrameRow) -> Iterator[str]:
    if frame.key_first is not None:
        yield from map(str, range(frame.key_first, frame.key_first + frame.items))
    yield from frame.keys
