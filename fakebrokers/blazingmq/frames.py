"""Every frame of the protocol: control messages (`frames_control`) and the other events (`frames_events`)."""

from __future__ import annotations

from fakebrokers.blazingmq.frames_control import *  # noqa: F403 - one name for both modules
from fakebrokers.blazingmq.frames_control import CONTROL_FRAMES
from fakebrokers.blazingmq.frames_events import *  # noqa: F403
from fakebrokers.blazingmq.frames_events import EVENT_FRAMES
from fakebrokers.blazingmq.schema import *  # noqa: F403 - what fields of frames hold
from fakebrokers.core.frames import frame_table

FRAMES = frame_table([*CONTROL_FRAMES, *EVENT_FRAMES])
