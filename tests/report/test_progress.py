"""Progress on stderr: short in a log, live on a terminal, with the time left."""

import io

from wpk.report.progress_line import ProgressLine, duration


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_log_gets_a_line_when_a_stage_begins_and_ends() -> None:
    stream = io.StringIO()
    progress = ProgressLine(stream)
    for done in range(101):
        progress("compiling", done, 100)
    first, last = stream.getvalue().splitlines()
    assert first == "compiling: 0/100"
    assert last.startswith("compiling: 100/100 in ")


def test_a_log_is_told_the_time_left_where_the_work_knows_it() -> None:
    stream = io.StringIO()
    ProgressLine(stream)("tuning problems", 0, 20, 600.0)
    assert stream.getvalue() == "tuning problems: 0/20, 10 min left\n"


def test_a_terminal_is_told_of_every_step_in_one_line() -> None:
    stream = Terminal()
    progress = ProgressLine(stream)
    progress("tuning problems", 1, 3, 90.0)
    progress("tuning problems", 1, 3, 80.0)
    progress("tuning problems", 3, 3)
    text = stream.getvalue()
    assert "1/3, 90 s left" in text
    assert "1/3, 80 s left" in text
    assert text.count("\n") == 1


def test_a_note_does_not_run_into_the_line_that_is_rewritten() -> None:
    stream = Terminal()
    progress = ProgressLine(stream)
    progress("tuning problems", 1, 3)
    progress.note("run 1: resume with --resume 1")
    assert stream.getvalue().splitlines()[-1] == "run 1: resume with --resume 1"


def test_durations_are_words() -> None:
    assert [duration(s) for s in (5, 119, 120, 7199, 9000)] == [
        "5 s",
        "119 s",
        "2 min",
        "120 min",
        "2.5 h",
    ]
