"""The checkers over columns: `conformance.rules.anomalies`, for millions of rows at a time.

Two twins, one meaning: every checker has its vectorised form here, with the same names and detail strings,
and a test holds both against each other on generated histories. A `FileSet` (one ``runs-ID.parquet`` and its
three tables) is judged as a whole, by one or several groups of checks, in one process and without any other:
`conformance.pipeline` spreads that over a process pool or over Spark.

It relies on what sealing promises, and checks it: the rows of a run lie together, in the order of `seq`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.pipeline.columns import messages, polls, requests, silence, wire
from conformance.pipeline.columns.fileset import FileSet
from conformance.pipeline.columns.findings import Findings

#: Checks that look at the same columns, by the name of the group.
GROUPS: Mapping[str, tuple[Callable[[FileSet, Findings], None], ...]] = {
    "messages": (messages.judge,),
    "wire": (wire.judge,),
    "polls": (polls.judge,),
    "rest": (requests.judge, silence.judge),
}
#: The group of the rules for all runs (`conformance.pipeline.columns.rules`), which judge traces on demand.
RULES = "rules"

__all__ = ["GROUPS", "RULES", "FileSet", "Findings"]
