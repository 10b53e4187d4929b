"""Wrong usage that the parser itself cannot see."""

from wpk.errors import WpkError


class UsageError(WpkError):
    """Options of a command that do not fit together."""

    exit_code = 2
