"""A protocol whose project has nothing for the judge yet."""

from __future__ import annotations

from dataclasses import replace

from tests import toy

PROTOCOL = replace(toy.PROTOCOL, name="mute", judge="tests.nowhere")
