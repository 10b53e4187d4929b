"""The top CMakeLists.txt: it configures, and builds the library that the package builds itself."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def configure(folder: Path, *, together: bool) -> Path:
    """Files of a build in a folder, where there is a CMake; for sources one by one or all together."""
    if shutil.which("cmake") is None:
        pytest.skip("needs cmake")
    options = ["-DWPK_PLUGINS=OFF", "-DCMAKE_BUILD_TYPE=Debug"]
    if together:
        options += ["-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0"]
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, *options], check=True, capture_output=True)
    return folder


@pytest.mark.slow
def test_every_source_of_the_emulator_is_compiled(tmp_path: Path) -> None:
    commands = (configure(tmp_path, together=False) / "compile_commands.json").read_text(
        encoding="utf-8"
    )
    sources = list((ROOT / "wpk" / "emulator" / "runtime").glob("*.cpp"))
    assert sources
    assert not [source for source in sources if str(source) not in commands]


@pytest.mark.slow
def test_the_library_builds(tmp_path: Path) -> None:
    configured = configure(tmp_path, together=True)
    subprocess.run(["cmake", "--build", configured], check=True, capture_output=True)
    assert (configured / "libwpk_emulator.so").is_file()
