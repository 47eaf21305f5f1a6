"""The commands that this package adds to ``fakebrokers``; see `fakebrokers.commands`."""

from __future__ import annotations

from fakebrokers.commands import Deferred

#: Name, where it is, and the first sentence of its help.
commands = [
    Deferred(name, f"conformance.{place}", about)
    for name, place, about in [
        ("adapter", "cli_adapter:adapter", "Adapters let the suite drive a client library in any language."),
        ("analyze", "cli_analyze:analyze", "Judge the runs in any number of journals on Spark."),
        ("chaos", "cli_chaos:chaos_command", "Try a client with random workloads under random faults."),
        (
            "clients",
            "cli_adapter:clients",
            "List the bundled client adapters, what they need, and whether they can run here.",
        ),
        (
            "compare",
            "cli_compare:compare_command",
            "Say the same commands to the fake and to a real server, and show where the answers differ.",
        ),
        (
            "conform",
            "cli_suite:conform_command",
            "Judge a client: run scenarios against it and say which requirements it meets.",
        ),
        (
            "explain",
            "cli_list:explain_command",
            "Say what a scenario or a rule demands, where that comes from, and what is done to the client.",
        ),
        (
            "gate",
            "cli_gate:gate_command",
            "Say whether a run may pass, against known failures and an earlier run.",
        ),
        (
            "known",
            "cli_known:known_command",
            "Make one file of known defects of others, each cause once, and of what a run has shown.",
        ),
        ("list", "cli_list:list_command", "List the scenarios: what a client is judged by."),
        ("mutants", "cli_mutants:mutants_command", "Show which scenario catches which broken client."),
        (
            "replay",
            "cli_sweep:replay_command",
            "Run what a sweep or chaos has written down, exactly.",
        ),
        (
            "shrink",
            "cli_sweep:shrink_command",
            "Find the smallest spec or schedule that fails as a replay file does; it is written beside it.",
        ),
        (
            "sweep",
            "cli_sweep:sweep_command",
            "Disturb a client at every position and judge what it does by rules that always hold.",
        ),
    ]
]
