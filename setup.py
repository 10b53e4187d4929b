"""Packages of the distribution: the one thing that pyproject.toml cannot say.

`search` and `graph_passes` stand at the top of the checkout and are installed inside `wpk`, where links
to them stand for whoever imports `wpk` from the checkout itself.  setuptools' discovery does not follow
such a mapping; a list kept by hand would rot.  So every folder below the three is a package, and every
file in it is shipped.
"""

from setuptools import find_namespace_packages, setup
from setuptools.command.editable_wheel import editable_wheel

FOLDERS = {"wpk": "wpk", "wpk.graph_passes": "graph_passes", "wpk.search": "search"}
LINKS = [f"{name.removeprefix('wpk.')}{below}" for name in FOLDERS for below in ("", ".*")]


class EditableWheel(editable_wheel):
    """An editable install that puts the checkout on the path, behind everything else.

    setuptools' own choice for mapped folders is a finder that is asked after the whole path: a folder
    that holds a clone called `wpk` would then be taken for the package by scripts beside it.  A path,
    unlike a finder, is also read by type checkers and editors.
    """

    def finalize_options(self) -> None:
        """Describe the checkout as it lies there: one package, with all of it below."""
        self.distribution.packages = ["wpk"]
        self.distribution.package_dir = {"": "."}
        super().finalize_options()


def packages() -> list[str]:
    """All packages by their installed names, folders without Python (device headers) included."""
    found = []
    for name, folder in FOLDERS.items():
        below = find_namespace_packages(folder, exclude=["*__pycache__*", *LINKS])
        found += [name, *(f"{name}.{package}" for package in below)]
    return found


setup(
    packages=packages(),
    package_dir=FOLDERS,
    package_data={"": ["*"]},
    cmdclass={"editable_wheel": EditableWheel},
)
