"""What a package manager knows of the library of a client."""

from __future__ import annotations

import msgspec


class Package(msgspec.Struct, frozen=True):
    """The library of a bundled client.

    Attributes:
        manager: ``pip``, ``npm``, ``go``, ``maven`` or ``cargo``; empty for a library that is in no registry.
        library: Its name there.
        dependency: Its name in the manifest of the adapter.
        folder: Of the adapter.
    """

    manager: str
    library: str
    dependency: str
    folder: str

    @property
    def line(self) -> str:
        """How its versions begin, where the adapter is for one line of them: ``0.14.``; else empty."""
        if self.dependency == self.library:
            return ""
        return f"{self.dependency.removeprefix(f'{self.library}-')}."
