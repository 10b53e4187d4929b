"""Who computes control flow whose bodies are engines: the host, which runs them as often as they are needed."""

from wpk.candidate import Candidate, Kind, Maker

CONTROL = Candidate(Maker("engines of bodies", "1", Kind.CONTROL), ())
"""What control flow is driven by. Its version is raised where an older one would drive it otherwise."""
