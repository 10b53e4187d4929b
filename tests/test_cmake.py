"""The top CMakeLists.txt: it configures, and builds the library that the package builds itself."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cmake") is None:
        pytest.skip("needs cmake")
    folder = tmp_path_factory.mktemp("cmake")
    subprocess.run(["cmake", "-S", ROOT, "-B", folder], check=True, capture_output=True)
    return folder


@pytest.mark.slow
def test_every_source_of_the_emulator_is_compiled(configured: Path) -> None:
    commands = (configured / "compile_commands.json").read_text(encoding="utf-8")
    sources = list((ROOT / "wpk" / "emulator" / "runtime").glob("*.cpp"))
    assert sources
    assert not [source for source in sources if str(source) not in commands]


@pytest.mark.slow
def test_the_library_builds(configured: Path) -> None:
    subprocess.run(["cmake", "--build", configured], check=True, capture_output=True)
    assert (configured / "libwpk_emulator.so").is_file()
