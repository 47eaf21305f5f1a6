"""What a client is known to get wrong: one file per client, each cause once, for suite, sweep and chaos.

    version = 2
    client = "rstream"
    client_version = "1.1.1"
    protocol = "rabbitmq-stream"

    [[defect]]
    id = "lost-connection-wakes-nobody"
    cause = "the loss of the connection wakes no pending request (client.py _listener)"
    severity = "medium"
    rows = ["RMQS-1.11 connect-fails-as-connection-or-closed", "wire-legal in NET-1.05 NET-1.06"]
    sometimes = ["NET-2.04"]
    generated = ["loss-ends-requests", "answer-counts: connect*"]
    sweep = [{ row = "ok-needs-answer", acts = ["cut*"] }]

``docs/how-to/known-defects.md`` says what each line means.

    defects    the values: a defect, and the rows that it shows itself in
    rows       a row as a text
    files      a file as a value, and a value as a file
    names      whether there is what a file names
    merge      several files as one, each cause once
    old        the three forms before, one for each of suite, sweep and chaos
"""
