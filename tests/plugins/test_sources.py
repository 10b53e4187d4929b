"""Each source of the C++ includes what it needs: for other tests those of a target are built as one."""

from pathlib import Path

import pytest
from support.plugins import built


@pytest.mark.exhaustive
def test_sources_compile_one_by_one(tmp_path: Path) -> None:
    built(tmp_path, "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0")
