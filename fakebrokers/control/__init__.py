"""Controlling fakes over HTTP: ``fakebrokers serve PROTOCOL --control PORT``, and `api.ControlApi`."""
