"""What the control API answers where it does not do what was asked: one shape for all of it."""

from __future__ import annotations

import msgspec


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a request that was refused.

    Attributes:
        status: Of the HTTP answer: 400 the request makes no sense, 403 it came from a web page, 404 there is
            nothing of that name, 405 not with this method, 408 what was waited for did not happen, 409 the
            name or the port is taken, 422 the fake cannot do that (now).
        path: Where in the request: ``body.faults[0].effect.type``, ``query.since``, or the URL's path.
        problem: What was expected there, and what came.
        journal: Of a wait that ended without a match: the last lines of the journal.
    """

    status: int
    path: str
    problem: str
    journal: list[str] = []


class Refusal(Exception):
    """Ends a request with a `Problem`."""

    def __init__(self, status: int, path: str, problem: str, journal: list[str] | None = None) -> None:
        super().__init__(f"{path}: {problem}")
        self.answer = Problem(status, path, problem, journal or [])
