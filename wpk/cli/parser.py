"""The parser of the command line: wrong usage in two lines, with what was probably meant."""

import argparse
import re
import sys
from typing import NoReturn

from wpk.did_you_mean import nearest

_CHOICE = re.compile(r"invalid choice: '?(.*?)'? \(choose from (.*)\)$", re.DOTALL)
_UNKNOWN = re.compile(r"unrecognized arguments: (-\S+)")


class Parser(argparse.ArgumentParser):
    """Says of wrong usage what is wrong and what to do, as every error of wpk does."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        fix = f"see {self.prog} --help"
        meant = self._meant(message)
        if meant:
            fix = f"did you mean {' or '.join(meant)}? {fix}"
        sys.stderr.write(f"wpk: error: {message}\n  fix: {fix}\n")
        raise SystemExit(2)

    def _meant(self, message: str) -> list[str]:
        choice, unknown = _CHOICE.search(message), _UNKNOWN.search(message)
        if choice is not None:
            return nearest(choice[1], re.findall(r"[^\s,']+", choice[2]))
        if unknown is not None:
            flags = [flag for action in self._every_action() for flag in action.option_strings]
            return nearest(unknown[1].partition("=")[0], flags)
        return []

    def _every_action(self) -> list[argparse.Action]:
        """All options, those of the command that was given included: unknown ones reach the outermost parser."""
        found = list(self._actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    found += parser._every_action()
        return found
