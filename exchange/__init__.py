"""Files of other programs, one module a format: networks and schedules that come in, traces that go out."""
