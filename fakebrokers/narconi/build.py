"""The faults that only Narconi has, in one line of Python each.

    cut_body(keep=40, kind="HttpDeliver")

The types of these functions are in the stub beside this file; see `fakebrokers.faults.build`.
"""

from __future__ import annotations

from fakebrokers.faults.making import builder
from fakebrokers.narconi.faults import (
    BreakBackend,
    CutBody,
    FailInstead,
    HttpAnswer,
    SlowBody,
    SplitDelivery,
    WithLength,
    WithoutHeader,
)
from fakebrokers.narconi.forging import CorruptContent, WithHeaders

break_backend = builder(BreakBackend)
corrupt_content = builder(CorruptContent)
cut_body = builder(CutBody)
fail_instead = builder(FailInstead)
http_answer = builder(HttpAnswer)
slow_body = builder(SlowBody)
split_delivery = builder(SplitDelivery)
with_headers = builder(WithHeaders)
with_length = builder(WithLength)
without_header = builder(WithoutHeader)
