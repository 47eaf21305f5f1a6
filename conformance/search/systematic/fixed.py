"""A client's fixed list of specs: the sweep of a pipeline.

``fakebrokers sweep --client NAME --write-specs FILE`` writes one, a spec as JSON in each line.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from conformance.clients.adapters.registry import Client
from conformance.known.defects import Part
from conformance.rules import Finding, judge
from conformance.run.acts import ACTS
from conformance.run.case import Case
from conformance.run.material import material_of
from conformance.run.specs import Spec, from_json, to_json
from conformance.search.fixed import Fixed, known_of
from conformance.search.systematic.campaign import SweptClient
from conformance.search.systematic.children import Child
from conformance.search.systematic.page import write_page
from conformance.search.systematic.replay import replay_of
from fakebrokers.errors import UsageError

SPECS = ".specs"


def load_specs(path: Path, protocol: str) -> list[Spec]:
    """Read a list. Raises `UsageError` where a spec is none, or cannot be run any more."""
    bases = material_of(protocol).bases
    try:
        found = [from_json(line) for line in path.read_text().splitlines() if line.strip()]
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"{path}: {error}") from None
    for spec in found:
        if spec.protocol != protocol or spec.base not in bases:
            raise UsageError(f"{path}: there is no base {spec.base} of {protocol}; write the list anew")
        if any(injection.act not in ACTS for injection in spec.injections):
            raise UsageError(f"{path}: {spec}: there is no such act; write the list anew")
    return found


def save_specs(path: Path, specs: Sequence[Spec]) -> None:
    """Write a list."""
    path.write_text("".join(f"{to_json(spec)}\n" for spec in specs))


class Listed(Fixed[Spec, Case]):
    """One client with its list of specs.

    Args:
        folder: Holds both, by the client's name. Raises `UsageError` if they are of another version.
        out: See `Fixed`.
    """

    def __init__(self, client: Client, protocol: str, folder: Path, out: Path) -> None:
        known = known_of(client, folder, Part.SWEEP)
        specs = load_specs(folder / f"{client.name}{SPECS}", protocol)
        super().__init__(client, protocol, specs, known.found_in(Part.SWEEP), out)
        self.subject = SweptClient(protocol, client.asked, in_memory=False, stock_in_memory=True)
        self.child = self.subject.child or Child.of(protocol, client.command, client.env)

    async def judged(self, spec: Spec) -> tuple[Case, list[Finding]]:
        return await self.child.judged(spec)

    def found_here(self, spec: Spec) -> list[Finding] | None:
        return judge(self.subject.run(spec)) if self.subject.is_confirmed else None

    def page(self, case: Case, finding: Finding, news: list[Finding], folder: Path) -> Path:
        findings = sorted(news, key=lambda one: one.name != finding.name)
        path = replay_of(self.name, "", case, findings).write(folder / "sweep" / self.name)
        return write_page(case, findings, path)
