"""Packages of the distribution: the one thing that pyproject.toml cannot say.

`search` and `graph_passes` stand at the top of the checkout and are installed inside `wpk`.
setuptools' discovery does not follow such a mapping; a list kept by hand would rot.  So every folder
below the three is a package, and every file in it is shipped.
"""

from setuptools import find_namespace_packages, setup

FOLDERS = {"wpk": "wpk", "wpk.graph_passes": "graph_passes", "wpk.search": "search"}


def packages() -> list[str]:
    """All packages by their installed names, folders without Python (device headers) included."""
    found = []
    for name, folder in FOLDERS.items():
        below = find_namespace_packages(folder, exclude=["*__pycache__*"])
        found += [name, *(f"{name}.{package}" for package in below)]
    return found


setup(packages=packages(), package_dir=FOLDERS, package_data={"": ["*"]})
