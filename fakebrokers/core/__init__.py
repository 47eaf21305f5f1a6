"""What all fakes are made of: frames, sessions, connections, timers, listeners."""
