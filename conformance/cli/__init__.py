"""The commands that this package adds to ``fakebrokers``; see `fakebrokers.commands`."""

from __future__ import annotations

from fakebrokers.commands import Deferred

#: Name, where it is, and the first sentence of its help.
commands = [
    Deferred(name, f"conformance.cli.{place}", about)
    for name, place, about in [
        ("adapter", "adapter:adapter", "Adapters let the suite drive a client library in any language."),
        ("analyze", "analyze:analyze", "Judge the runs in any number of journals on Spark."),
        (
            "bisect",
            "bisection:bisect_command",
            "Find the version of a client that changed the verdict of a row, or of a replay file.",
        ),
        ("chaos", "chaos:chaos_command", "Try a client with random workloads under random faults."),
        (
            "clients",
            "adapter:clients",
            "List the bundled client adapters, what they need, and whether they can run here.",
        ),
        (
            "compare",
            "compare:compare_command",
            "Send the same commands to the fake and to a real server, and show where the answers differ.",
        ),
        (
            "conform",
            "suite:conform_command",
            "Judge a client: run scenarios against it and report which requirements it meets.",
        ),
        (
            "explain",
            "list:explain_command",
            "Explain what scenarios or rules demand, where that comes from, and what is done to the client.",
        ),
        (
            "gate",
            "gate:gate_command",
            "Decide whether a run may pass, by known failures and an earlier run.",
        ),
        (
            "known",
            "known:known_command",
            "Make one file of known defects of others, each cause once, and of what a run has shown.",
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
            "Judge the last releases of clients, and write static pages of what each has fixed and broken.",
        ),
        (
            "shrink",
            "replay:shrink_command",
            "Find the smallest spec or schedule that fails as a replay file does; it is written beside it.",
        ),
        (
            "sweep",
            "sweep:sweep_command",
            "Disturb a client at every position and judge what it does by rules that always hold.",
        ),
    ]
]
