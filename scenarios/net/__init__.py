"""What every protocol's client has to survive: sections NET-1 to NET-4 of the catalogue.

A scenario is declared once. The catalogue says which protocols it is run for; what differs from protocol
to protocol (the base script, the kinds of op, the settings of the fake) is in `scenarios.subjects`.
"""
