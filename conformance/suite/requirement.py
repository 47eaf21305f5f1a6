"""What a catalogue is made of: requirements, in sections, in families."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Level = Literal["MUST", "SHOULD", "MAY"]


class Requirement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a scenario demands, in words.

    Attributes:
        id: Such as ``RMQS-3.09``; never changes, never used again.
        basis: Codes of the source sentences it rests on; `Family.basis` has the sentences.
        needs: Capabilities that the adapter must have declared.
        profile: For which profiles of the fake, if not for ``real``.
        fault: What the broker or the network does.
        passes: What the client must do; the tolerated outcomes too.
        seen: Issues of real clients that show the need.
    """

    id: str
    title: str
    level: Level
    severity: str
    basis: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    profile: str = ""
    fault: str = ""
    passes: str = ""
    seen: tuple[str, ...] = ()

    @property
    def section(self) -> str:
        """``RMQS-3`` of ``RMQS-3.09``."""
        return self.id.partition(".")[0]

    @property
    def family(self) -> str:
        """``RMQS`` of ``RMQS-3.09``."""
        return self.id.partition("-")[0]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A chapter of a family."""

    id: str
    title: str


class Covered(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a family for several protocols says of one of them.

    Attributes:
        holds: The requirements that its clients are judged by.
        without: Id to the reason, for all others.
        remarks: Id to what the fault, or the criterion, is in the words of the protocol.
    """

    holds: tuple[str, ...] = ()
    without: Mapping[str, str] = {}
    remarks: Mapping[str, str] = {}


class Family(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of the catalogue.

    Attributes:
        protocol: The protocol that all of it is for; empty if it covers several.
        protocols: Those that it covers, if these are several.
        scenarios: Requirements that are not stated at their scripts.
        basis: Code to paraphrased sentence of the protocol document.
        note: What readers of each of its requirements should know, one sentence.
    """

    family: str
    title: str
    protocol: str = ""
    protocols: Mapping[str, Covered] = {}
    basis: Mapping[str, str] = {}
    sections: tuple[Section, ...] = ()
    scenarios: tuple[Requirement, ...] = ()
    note: str = ""
