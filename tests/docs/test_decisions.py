"""The table of decisions names each of them with its status, and links lead somewhere."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
NOTES = sorted(FOLDER.glob("[0-9]*.md"))
ROWS = re.findall(
    r"^\| (\d+) \| \[(.+)\]\((.+\.md)\) \| (.+) \|$",
    (FOLDER / "README.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_every_decision_stands_in_the_table_by_its_title() -> None:
    titles = [path.read_text(encoding="utf-8").partition("\n")[0] for path in NOTES]
    assert [f"# {number}. {title}" for number, title, _, _ in ROWS] == titles
    assert [name for _, _, name, _ in ROWS] == [path.name for path in NOTES]


def test_every_decision_begins_with_the_status_that_the_table_repeats() -> None:
    for (_, _, name, status), path in zip(ROWS, NOTES, strict=True):
        _, second, *_ = path.read_text(encoding="utf-8").split("\n\n")
        assert " ".join(second.split()) == f"**Status.** {status}", name


def test_what_supersedes_a_decision_says_so() -> None:
    for _, _, name, status in ROWS:
        for sentence in re.findall(r"Superseded.+?\.(?: |$)", status):
            for newer in re.findall(r"\]\((.+?)\)", sentence):
                assert f"]({name})" in (FOLDER / newer).read_text(encoding="utf-8"), (name, newer)


def test_links_of_decisions_lead_to_files() -> None:
    for path in (*NOTES, FOLDER / "README.md"):
        for target in re.findall(r"\]\(([\w./-]+\.md)\)", path.read_text(encoding="utf-8")):
            assert (FOLDER / target).is_file(), f"{path.name}: {target}"
