"""What measures a client: one interface for all languages, and the labels of what is executed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from conformance.clients.adapters.registry import Client
from conformance.coverage.document import ClientCoverage

ROW, SPEC, PROCESS = "row", "spec", "process"  #: what a label begins with
BESIDE = ""  #: the label of what is executed between runs, such as imports


class CoverageMeter(ABC):
    """Measures one client.

    Attributes:
        client: As it has to be started to be measured: its command and environment may differ.
        folder: For what processes leave, and for the page.
    """

    client: Client
    folder: Path

    @contextmanager
    def doing(self, label: str) -> Iterator[None]:
        """What is executed in this process meanwhile has this label.

        Args:
            label: Of a row or a spec; see `row` and `spec`.
        """
        yield

    def news(self, label: str) -> None:  # noqa: B027 - optional hook
        """Count what the last run in this process with this label was the first to execute."""

    def served(self, label: str, pid: int) -> None:  # noqa: B027 - optional hook
        """A process has done what the label names, and was reset or has ended."""

    @abstractmethod
    def document(self) -> ClientCoverage:
        """All that was executed, also in processes that have ended."""


def row(name: str) -> str:
    """The label of a scenario."""
    return f"{ROW}:{name}"


def spec(base: str, acts: Sequence[str]) -> str:
    """The label of a spec of the sweep."""
    return f"{SPEC}:{base}:{','.join(acts)}"
