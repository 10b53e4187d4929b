"""What benchmarks measure and tests execute: exported networks, replays, candidates that go wrong."""
