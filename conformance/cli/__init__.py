"""The commands that this package adds to ``fakebrokers``; see `fakebrokers.commands`."""

from __future__ import annotations

from fakebrokers.commands import Deferred

#: Name, where it is, and the first sentence of its help.
commands = [
    Deferred(name, f"conformance.cli.{place}", about)
    for name, place, about in [
        ("adapter", "adapter:adapter", "Adapters let the suite drive a client library in any language."),
        ("analyze", "analyze:analyze", "Judge the runs in any number of journals, on Spark or locally."),
        (
            "bisect",
            "bisection:bisect_command",
            "Find the version of a client that changed a verdict.",
        ),
        ("chaos", "chaos:chaos_command", "Try a client with random workloads under random faults."),
        (
            "clients",
            "adapter:clients",
            "List the bundled clients, and which of them can run here.",
        ),
        (
            "compare",
            "compare:compare_command",
            "Show where a fake and a real server answer differently.",
        ),
        (
            "conform",
            "suite:conform_command",
            "Judge a client: report which requirements it meets.",
        ),
        (
            "explain",
            "list:explain_command",
            "Explain what scenarios or rules demand, and why.",
        ),
        (
            "gate",
            "gate:gate_command",
            "Decide by known failures and a baseline if a run may pass.",
        ),
        (
            "known",
            "known:known_command",
            "Merge files of known defects, and add what a run has shown.",
        ),
        ("list", "list:list_command", "List the scenarios: what a client is judged by."),
        ("mutants", "mutants:mutants_command", "Show which scenario catches which broken client."),
        (
            "replay",
            "replay:replay_command",
            "Run a replay file of sweep or chaos again, exactly.",
        ),
        (
            "scoreboard",
            "scoreboard:scoreboard_command",
            "Judge the last releases of clients, and write pages of it.",
        ),
        (
            "shrink",
            "replay:shrink_command",
            "Find the smallest spec or schedule that fails the same.",
        ),
        (
            "sweep",
            "sweep:sweep_command",
            "Disturb a client at every frame, and judge it by rules.",
        ),
    ]
]
