"""What a client has to survive: one folder per protocol, one file per section of the catalogue."""
