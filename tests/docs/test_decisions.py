"""The table of decisions names each of them, and links lead somewhere."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
NOTES = sorted(FOLDER.glob("[0-9]*.md"))


def test_every_decision_stands_in_the_table_by_its_title() -> None:
    table = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+\.md)\) \| .+ \|$", table, re.MULTILINE)
    titles = [path.read_text(encoding="utf-8").partition("\n")[0] for path in NOTES]
    assert [f"# {number}. {title}" for number, title, _ in rows] == titles
    assert [name for _, _, name in rows] == [path.name for path in NOTES]


def test_links_of_decisions_lead_to_files() -> None:
    for path in (*NOTES, FOLDER / "README.md"):
        for target in re.findall(r"\]\(([\w./-]+\.md)\)", path.read_text(encoding="utf-8")):
            assert (FOLDER / target).is_file(), f"{path.name}: {target}"
