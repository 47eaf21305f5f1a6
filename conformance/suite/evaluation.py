"""From what ended a script to a verdict, and whom it is about."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import conformance
import fakebrokers
from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.given import NotGiven
from conformance.clients.adapter.result import Result
from conformance.results import Verdict
from conformance.suite import outside
from conformance.suite.earned import closest, unfired
from conformance.suite.evidence import end_of
from conformance.suite.expect import Expect, Inconclusive, SetupFailed, Unsupported, Violated
from fakebrokers.errors import FakeBrokerError, UsageError, WaitTimeout
from fakebrokers.journal.record import Meaning, State, states_that

#: A failure by time alone is the harness's fault when its own loop stood still for that long (seconds).
LAG_LIMIT_S = 0.15
#: The adapter is to blame, not its library.
ADAPTER = "adapter"
#: What a script may stumble over when a client does what no correct one does.
_STUMBLES = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError)
#: States of the journal after which no answer need come.
ENDS = frozenset({*states_that(Meaning.CUT), State.FIN})
_OURS = tuple(Path(package.__path__[0]) for package in (conformance, fakebrokers))
#: These may be installed among others.
_WELL_KNOWN = (*_OURS, _OURS[0].with_name("scenarios"))
_OTHERS = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))

Details = dict[str, Any]


class Evaluation:
    """What is known when a script has ended.

    Args:
        broker: The fake, stopped.
        lag_s: The longest time for which the runner's loop stood still.
        mark: The position in the client's stderr at which the run began.
    """

    def __init__(self, adapter: Adapter, broker: Any, lag_s: float, mark: int = 0) -> None:
        self._adapter = adapter
        self._broker = broker
        self._lag_s = lag_s
        self._mark = mark

    def verdict(self, error: Exception | None, expect: Expect) -> tuple[Verdict, Details]:
        """The verdict, and what is said about it.

        An adapter that broke its protocol comes first: nothing that it said is worth anything. A client that
        died or does not answer has failed, however far the script came.
        """
        if self._adapter.violations:
            return self._broken(error)
        if error is None:
            if not expect.tolerated:
                return Verdict.PASS, {}
            reason = "; ".join(expect.tolerated)
            return Verdict.NON_STRICT, {"reason": reason, "criterion_id": expect.tolerated_ids[0]}
        if leaves_open(error):
            gone = self._gone(str(error))
            if gone is not None:
                return self._failed(gone)
        return self._of(error)

    def _of(self, error: Exception) -> tuple[Verdict, Details]:
        if isinstance(error, Inconclusive):
            return Verdict.INCONCLUSIVE, {"reason": str(error), "criterion_id": error.id}
        if isinstance(error, Unsupported):
            return Verdict.UNSUPPORTED, {"reason": str(error)}
        if isinstance(error, Violated):
            return self._failed(error)
        if isinstance(error, NotGiven):
            return self._failed(Violated("the client's answers are complete", str(error), id="answer"))
        if isinstance(error, WaitTimeout | TimeoutError):
            return self._waited(error)
        if isinstance(error, UsageError):
            # such as a connection or a stream that the client was to bring about, and did not
            return Verdict.INCONCLUSIVE, {
                "reason": f"the script could not go on: {error}",
                "criterion_id": "script-ended",
            }
        text = "".join(traceback.format_exception(error)[-3:])
        named = f"{type(error).__name__}: {error}"
        if leaves_open(error):
            return Verdict.INCONCLUSIVE, {
                "reason": f"the script can make nothing of what this client does: {named}",
                "actual": text,
                "criterion_id": "script-ended",
            }
        return Verdict.HARNESS_ERROR, {"reason": named, "actual": text}

    def _broken(self, error: Exception | None) -> tuple[Verdict, Details]:
        """The adapter broke its protocol: that says nothing about the library."""
        problem = self._adapter.violations[0]
        besides = "" if error is None else f"; besides: {error}"
        return Verdict.HARNESS_ERROR, {
            "criterion": "the adapter keeps to its protocol",
            "criterion_id": "adapter-protocol",
            "actual": "; ".join(self._adapter.violations[:5]) + besides,
            "reason": f"the adapter broke its protocol: {problem}",
            "tags": (ADAPTER,),
        }

    def _failed(self, error: Violated) -> tuple[Verdict, Details]:
        tags = [*error.tags, *(["setup"] if isinstance(error, SetupFailed) else [])]
        if not self._adapter.alive and "crashed" not in tags:
            tags.append("crashed")
        elif any(result.op == "state" for result in self._adapter.hung) and "hang" not in tags:
            tags.append("hang")
        if error.late_s is not None and self._lag_s > max(LAG_LIMIT_S, error.late_s):
            reason = f"{error}; but the harness itself was paused for {self._lag_s:.2f} s"
            return Verdict.INCONCLUSIVE, {"reason": reason, "criterion_id": error.id, "timing": True}
        return Verdict.FAIL, {
            "criterion": error.criterion,
            "criterion_id": error.id,
            "actual": error.actual,
            "reason": f"{error}{self._besides()}",
            "tags": tuple(tags),
            "timing": error.late_s is not None,
        }

    def _waited(self, error: Exception) -> tuple[Verdict, Details]:
        """The script waited for something that did not come."""
        gone = self._gone(str(error).partition("\n")[0])
        more = ("crashed",) if not self._adapter.alive else gone.tags if gone is not None else ()
        return Verdict.FAIL, {
            "criterion": "the client does in time what the script waits for",
            "criterion_id": "in-time",
            "actual": str(error).splitlines()[0] if str(error) else "nothing came within the script's limit",
            "reason": (str(error) or "the script ran into its own time limit") + self._besides(),
            "tags": ("waited", *more),
        }

    def _gone(self, otherwise: str) -> Violated | None:
        """What to say of a client that died, or that owes an answer which nothing keeps it from giving."""
        if not self._adapter.alive:
            return died(f"it ended; {otherwise}")
        for result in self._adapter.hung:
            if not self._is_excused(result):
                actual = f"{result}; {otherwise}"
                return Violated(f"{result.op} ends by its deadline", actual, tags=("hang",), id="op-ends")
        return None

    def _is_excused(self, result: Result) -> bool:
        """Without a time-out of its own a library waits for the confirm that a fault, or a cut, has taken."""
        waits = result.op in ("publish", "publish_many", "flush")
        if self._adapter.hello.can("ack_timeout") or not waits:
            return False
        return any(r.fault or r.kind in ENDS for r in getattr(self._broker, "journal", ()))

    def _besides(self) -> str:
        """What a reader of a failure has to know about the client's end and about the faults."""
        end = end_of(self._adapter, self._mark)
        names = unfired(self._broker) if hasattr(self._broker, "faults") else []
        idle = f"never took place: {', '.join(map(self._unfired, names[:3]))}" if names else ""
        return "".join(f" [{text}]" for text in (end, idle) if text)

    def _unfired(self, name: str) -> str:
        """A fault that never took place, and what came closest to it."""
        near = closest(self._broker, name)
        return f"{name} ({near})" if near else name


def leaves_open(error: Exception) -> bool:
    """Whether the script ended without having found out about the client."""
    return isinstance(error, Inconclusive | Unsupported | NotGiven | UsageError) or _is_stumble(error)


def _is_stumble(error: Exception) -> bool:
    """Whether the script itself failed, in its own lines, and not the suite or the fake.

    Correct clients take every script to its end: the project's tests prove that.
    """
    if not isinstance(error, _STUMBLES) or isinstance(error, FakeBrokerError):
        return False
    places = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    known = (*_WELL_KNOWN, *(folder.path for folder in outside.folders()))
    reported = [place for place in places if _is_below(place, known) or not _is_below(place, _OTHERS)]
    return bool(reported) and not _is_below(reported[-1], _OURS)


def died(actual: str) -> Violated:
    """The client's process ended although nobody asked for it."""
    return Violated("the client's process goes on", actual, tags=("crashed",), id="process-lives")


def _is_below(place: Path, folders: Iterable[Path]) -> bool:
    return any(place.is_relative_to(folder) for folder in folders)
