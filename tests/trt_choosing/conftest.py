"""Files that NVIDIA publishes with trt-engine-explorer, where somebody put them."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def published() -> Path:
    """The folder that ``WPK_TREX`` names; a checkout of trt-engine-explorer lies somewhere in it."""
    named = os.environ.get("WPK_TREX")
    if not named:
        pytest.skip("WPK_TREX does not name a folder with trt-engine-explorer's files")
    return Path(named)
