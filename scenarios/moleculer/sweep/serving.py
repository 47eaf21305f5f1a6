"""What a node has to answer to what it is asked, as far as base scripts say what their actions do.

The service is called ``s`` in all of them, and its actions by what they do (docs/protocols/moleculer.md, 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from conformance.run.showing import shown
from fakebrokers.core.frames import Frame
from fakebrokers.moleculer.packets import Info, Ping, Pong, Request, Response

ACTIONS: Mapping[str, Any] = {
    "echo": "echo",
    "fail": {"throw": {"message": "no", "code": 422}},
    "slow": {"sleep_ms": 200},
    "value": {"return": {"text": "äöü€", "large": 2**53 + 1, "none": None}},
}
FAILED, NOT_FOUND, TOO_LATE = 422, 404, 504
SLACK_S = 0.3  #: what may lie between the question as it was written and as it was read


def wrong_answer(asked: Frame, answer: Any, after_s: float) -> str:
    """What is wrong with an answer of the client, so long after its question; "" if nothing is."""
    if isinstance(asked, Ping) and isinstance(answer, Pong):
        reported, given = (None if one.time is UNSET else one.time for one in (answer, asked))
        fits = given is None or reported == given
        return "" if fits else f"the PONG has the time {shown(reported)}, its PING had {shown(given)}"
    if isinstance(answer, Info):
        return "" if isinstance(answer.services, list) else f"services of INFO is {shown(answer.services)}"
    if isinstance(asked, Request) and isinstance(answer, Response):
        return _too_soon(asked, answer, after_s) or _wrong_response(asked, answer)
    return ""


def _too_soon(asked: Request, answer: Response, after_s: float) -> str:
    """Only what has taken too long is called so."""
    code = answer.error.get("code") if isinstance(answer.error, Mapping) else None
    limit_s = asked.timeout / 1000 if isinstance(asked.timeout, int | float) else 0
    if answer.success is not False or code != TOO_LATE or asked.action != "s.slow":
        return ""
    if 0 < limit_s <= after_s + SLACK_S:
        return ""
    limit = f"a timeout of {shown(asked.timeout)} ms"
    return f"{asked.action} with {limit} was answered with a time-out after {after_s:.3f} s"


def _late(asked: Request, answer: Response) -> str:
    """The caller may have given up by then; if it gets an answer, it is the time-out."""
    code = answer.error.get("code") if isinstance(answer.error, Mapping) else None
    if answer.success is not False or code in (TOO_LATE, NOT_FOUND):
        return ""
    return f"{asked.action} took too long, and was answered with code {code}"


def _wrong_response(asked: Request, answer: Response) -> str:
    if not isinstance(asked.action, str):
        return ""
    service, _, action = asked.action.rpartition(".")
    if (isinstance(asked.timeout, int | float) and 0 < asked.timeout < 1000) or service != "s":
        return _late(asked, answer) if service == "s" and action == "slow" else ""
    wanted = {"echo": asked.params, "slow": "slept", "value": ACTIONS["value"]["return"]}
    said = None if answer.data is UNSET else answer.data
    if action in wanted and action in ACTIONS:
        if answer.success is not True:
            return ""  # it was taken back, or is not there yet; what is refused is looked at elsewhere
        given = None if wanted[action] is UNSET else wanted[action]
        if given is None and said == {}:  # what an action makes of parameters that are not there
            return ""
        return "" if said == given else f"{asked.action} was answered with {shown(said)}, not {shown(given)}"
    if action not in ("fail", "nowhere"):
        return ""
    code = answer.error.get("code") if isinstance(answer.error, Mapping) else None
    codes = (FAILED, NOT_FOUND) if action == "fail" else (NOT_FOUND,)
    if answer.success is not False or code not in codes:
        return f"{asked.action} was answered with success {shown(answer.success)} and code {shown(code)}"
    return ""
