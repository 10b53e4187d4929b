"""Errors that a person can act on: what happened, where, seen against allowed, and what to do."""


class WpkError(Exception):
    """Base of every error that is the user's or the environment's to solve, not a bug.

    Attributes:
        what: One sentence: what failed, where, and what was seen against what is allowed.
        fix: One sentence: what to do about it.
        exit_code: What the command line returns for it.
    """

    exit_code = 1

    def __init__(self, what: str, *, fix: str) -> None:
        """Keep the two sentences apart, so that every front end can print them its own way."""
        super().__init__(what)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        """Both sentences: who reads a traceback, or prints the exception, must not miss the fix."""
        return f"{self.what}\n  fix: {self.fix}"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Survive pickling between processes with the keyword-only ``fix``."""
        return (_rebuild, (type(self), self.what, self.fix))


def _rebuild(kind: type[WpkError], what: str, fix: str) -> WpkError:
    return kind(what, fix=fix)


class GraphError(WpkError):
    """The model cannot be read, checked, rewritten or lowered."""


class UnsupportedError(GraphError):
    """The model is valid, but holds operators or shapes that wpk does not carry."""


class TargetError(WpkError):
    """The GPU asked for is unknown, or cannot do what was asked of it."""


class ScheduleError(WpkError):
    """A schedule is illegal, or none is legal for a problem."""


class CompileError(WpkError):
    """A kernel failed to compile, for the GPU or for the emulator."""


class LaunchError(WpkError):
    """A kernel failed while it ran: illegal address, deadlock, time limit."""


class PlanError(WpkError):
    """A plan file is damaged, hostile, or was written by an incompatible version."""


class EngineError(WpkError):
    """A plan cannot be executed with the inputs or on the device it was given."""


class WrongModelError(WpkError):
    """A plan is compared with a model that it was not made from."""

    exit_code = 2


class VerificationError(WpkError):
    """The numbers disagree with the reference."""

    exit_code = 3
