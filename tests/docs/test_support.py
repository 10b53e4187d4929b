"""The page of what is supported names what the table of operators holds."""

import re
from pathlib import Path

from wpk.operators import OperatorKind, of_kind

PAGE = Path(__file__).parents[2] / "docs" / "support.md"


def test_every_element_wise_operator_is_named_on_the_page_and_no_other() -> None:
    page = PAGE.read_text(encoding="utf-8")
    found = re.search(r"^\| element-wise operators.*?\| (.*?);", page, flags=re.MULTILINE)
    assert found is not None
    assert found[1].split(", ") == sorted(of_kind(OperatorKind.ELEMENTWISE))
