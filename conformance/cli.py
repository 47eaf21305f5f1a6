"""The commands that this package adds to ``fakebrokers``; see `fakebrokers.commands`."""

from __future__ import annotations

from conformance.cli_adapter import adapter, clients
from conformance.cli_analyze import analyze
from conformance.cli_chaos import chaos_command
from conformance.cli_compare import compare_command
from conformance.cli_gate import gate_command
from conformance.cli_mutants import mutants_command
from conformance.cli_suite import conform_command, explain_command, list_command
from conformance.cli_sweep import replay_command, shrink_command, sweep_command

commands = [
    adapter,
    analyze,
    chaos_command,
    clients,
    compare_command,
    conform_command,
    explain_command,
    gate_command,
    list_command,
    mutants_command,
    replay_command,
    shrink_command,
    sweep_command,
]
