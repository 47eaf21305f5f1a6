"""What a scenario demands, as its script says it: the docstring is the requirement.

\"\"\"Whole handshake tail coalesced.

Fault: SaslAuthenticate answer and Tune in one segment
Pass: connect succeeds
Seen: pulsar-client-go#163; stream-go-client#378
\"\"\"
"""

from __future__ import annotations

import inspect
import re
from typing import NamedTuple

from fakebrokers.errors import UsageError

_FORM = re.compile(
    r"(?P<title>.+?)\n\nFault: (?P<fault>.+?)\nPass: (?P<passes>.+?)"
    r"(?:\nProfile: (?P<profile>.+?))?(?:\nSeen: (?P<seen>.+))?",
    re.DOTALL,
)


class Sentences(NamedTuple):
    """What a docstring says; see `conformance.suite.catalogue.Requirement`."""

    title: str
    fault: str
    passes: str
    profile: str
    seen: tuple[str, ...]


def sentences(docstring: str | None) -> Sentences:
    """Read the docstring of a script.

    Raises:
        UsageError: It has not the form above.
    """
    form = _FORM.fullmatch(inspect.cleandoc(docstring or "").strip())
    if form is None:
        raise UsageError(
            "expected a docstring of a title, an empty line, and lines that begin with `Fault: `, `Pass: ` "
            "and, if there is something to say, `Profile: ` and `Seen: ` (with semicolons between); "
            f"got {(docstring or '').strip()!r}"
        )
    title, fault, passes, profile, seen = (" ".join((each or "").split()) for each in form.groups())
    return Sentences(title.removesuffix("."), fault, passes, profile, tuple(filter(None, seen.split("; "))))
