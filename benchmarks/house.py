"""Count what makes the code hard to find one's way in.

    python benchmarks/house.py                                                    this checkout
    python benchmarks/house.py --checkout OTHER --python OTHER/.venv/bin/python   another one

The first two counts follow a convolution with its normalisation and activation through `wpk.optimize`
(fp16, for an H200, all checks on) and need an environment in which that checkout is installed; the others
read its sources. ``--json FILE`` writes the figures with what was counted.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDERS = {"wpk": "wpk", "search": "wpk.search", "graph_passes": "wpk.graph_passes"}
"""Folders of a checkout, and the packages that they are installed as."""

LONGEST_FUNCTION = 40

_LIBRARY = re.compile(
    r"isinstance\([^()]*(?:LibraryChoice|LibraryPick|LibraryImage|Library)\b|\bis_library\b|\blibrary=(?:True|False)"
    r"|==\s*CUDNN\b|\bin TEMPLATE_OF\b|\.template\s*(?:==|in)\s*[\w.]*(?:rival|names|librar)"
)
"""Ways to ask whether a library makes a step."""

_PARTICIPLE = re.compile(
    r"^_?(?:[A-Z][a-z]*)?(?:[A-Z][a-z]*(?:ed|iven)|Built|Begun|Found|Known|Seen|Bound|Told|Made|Means|Run)$"
)
_NO_PARTICIPLE = {"Speed", "Seed"}

_KINDS = ("Convolution", "Product", "Pooling", "Attention", "Normalisation", "Reduction", "Softmax")
"""Classes of problems; a file that tells two of them apart is a switch."""

_TRACE = '''
import json, os, sys, tempfile, threading
import numpy as np, onnx
root, folders = sys.argv[1], tuple(os.path.join(sys.argv[1], each, "") for each in sys.argv[2:])
text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,16,14,14] x) => (float[1,32,14,14] y) {
  a = Conv<pads = [1,1,1,1]>(x, w)  b = BatchNormalization(a, s, t, m, v)  y = Relu(b) }"""
model, rng = onnx.parser.parse_model(text), np.random.default_rng(0)
for name, shape in dict(w=(32, 16, 3, 3), s=(32,), t=(32,), m=(32,), v=(32,)).items():
    values = np.abs(rng.standard_normal(shape)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
import wpk
seen = set()
def enter(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(folders) and not code.co_name.startswith("<"):
        seen.add((os.path.relpath(code.co_filename, root), code.co_qualname))
with tempfile.TemporaryDirectory() as folder:
    os.environ["XDG_CACHE_HOME"] = folder  # so that nothing is compiled already
    def optimize(graph):
        onnx.save(graph, folder + "/m.onnx")
        wpk.optimize(folder + "/m.onnx", folder + "/m.plan", target="h200", precision="fp16", search="static")
    optimize(onnx.parser.parse_model(text.partition("=>")[0] + "=> (float[1,16,14,14] y) { y = Tanh(x) }"))
    threading.setprofile(enter); sys.setprofile(enter)  # modules have been executed: a model does not
    optimize(model)
    sys.setprofile(None)
print(json.dumps(sorted(seen)))
'''


@dataclass(frozen=True)
class Module:
    """A source file.

    Attributes:
        name: Of the module, e.g. ``wpk.plan.plan``.
        path: From the checkout's root.
        text: What it says.
        tree: The same, parsed.
    """

    name: str
    path: str
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The package directly below wpk, empty for modules of wpk itself."""
        _, *parts = self.name.split(".")
        is_package = self.path.endswith("__init__.py")
        return parts[0] if parts and (is_package or parts[1:]) else ""


@dataclass(frozen=True)
class Count:
    """A figure, and what was counted."""

    words: str
    figure: str
    counted: Sequence[str]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the counts of a checkout."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--checkout", type=Path, default=Path(__file__).parents[1], metavar="FOLDER"
    )
    parser.add_argument(
        "--python", default=sys.executable, help="with that checkout's wpk installed"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    root = options.checkout.resolve()
    modules = list(read_modules(root))
    counts = [*entered(root, options.python), *(count(modules) for count in COUNTS)]
    width = max(len(each.words) for each in counts)
    for each in counts:
        print(f"{each.words:{width}}  {each.figure:>9}")
    if options.json:
        found = {each.words: {"figure": each.figure, "counted": each.counted} for each in counts}
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def read_modules(root: Path) -> Iterator[Module]:
    """All modules of the packages, in order."""
    for folder, package in FOLDERS.items():
        for path in sorted((root / folder).rglob("*.py")):
            inner = path.relative_to(root / folder).with_suffix("").parts
            name = ".".join((package, *(part for part in inner if part != "__init__")))
            text = path.read_text(encoding="utf-8")
            yield Module(name, path.relative_to(root).as_posix(), text, ast.parse(text))


def entered(root: Path, python: str) -> Iterator[Count]:
    """Files and functions outside graph_passes that one fused convolution enters."""
    done = subprocess.run(
        [python, "-P", "-c", _TRACE, str(root), *FOLDERS],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"wpk.optimize of {root} fails in {python}:\n{done.stderr}")
    seen = [(file, name) for file, name in json.loads(done.stdout) if not _is_pass(file)]
    files = sorted({file for file, _ in seen})
    yield Count("files that Conv-BN-ReLU enters", str(len(files)), files)
    functions = [f"{file}: {name}" for file, name in seen]
    yield Count("functions that it enters", str(len(functions)), functions)


def _is_pass(file: str) -> bool:
    return file.startswith("graph_passes/")


def doors(modules: Sequence[Module]) -> Count:
    """Modules of each room that other rooms import."""
    names = {each.name for each in modules}
    rooms, opened = defaultdict(set), defaultdict(set)
    for each in modules:
        rooms[each.room].add(each.name)
    for each in modules:
        for imported in _imports(each):
            target = imported if imported in names else imported.rpartition(".")[0]
            other = target.split(".")[1] if target in names and target != "wpk" else ""
            if other and other in rooms and other != each.room:
                opened[other].add(target)
    told = [
        f"{room}: {len(opened[room])} of {len(rooms[room])}"
        for room in sorted(opened, key=lambda room: -len(opened[room]))
    ]
    return Count("modules that other rooms import", str(sum(map(len, opened.values()))), told)


def _imports(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (f"{alias.name}.*" for alias in node.names)


def imports(modules: Sequence[Module]) -> Count:
    """Import statements of the file that has most."""
    counted = sorted(
        (sum(isinstance(n, ast.Import | ast.ImportFrom) for n in ast.walk(each.tree)), each.path)
        for each in modules
    )
    told = [f"{path}: {number}" for number, path in reversed(counted[-10:])]
    return Count("import statements of the worst file", str(counted[-1][0]), told)


def library_questions(modules: Sequence[Module]) -> Count:
    """Places that ask whether a step is a library's."""
    told = [
        f"{each.path}:{number}: {line.strip()}"
        for each in modules
        for number, line in enumerate(each.text.splitlines(), 1)
        if _LIBRARY.search(line)
    ]
    return Count("places that ask whether it is the library", str(len(told)), told)


def tanh_tables(modules: Sequence[Module]) -> Count:
    """Files that name an operator whose knowledge should stand once."""
    told = [each.path for each in modules if _has(each, lambda n: n.value == "Tanh")]
    return Count("files that name Tanh", str(len(told)), told)


def _has(module: Module, is_wanted: Callable[[ast.Constant], bool]) -> bool:
    return any(isinstance(n, ast.Constant) and is_wanted(n) for n in ast.walk(module.tree))


def problem_switches(modules: Sequence[Module]) -> Count:
    """Files that tell kinds of problems apart by their classes."""
    told = []
    for each in modules:
        kinds = {name for node in ast.walk(each.tree) for name in _told_apart(node)}
        if len(kinds & set(_KINDS)) > 1:
            told.append(each.path)
    return Count("switches over kinds of problems", str(len(told)), told)


def _told_apart(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.MatchClass(cls=ast.Name(name)):
            yield name
        case ast.Call(func=ast.Name("isinstance"), args=[_, classes]):
            yield from (each.id for each in ast.walk(classes) if isinstance(each, ast.Name))


def long_functions(modules: Sequence[Module]) -> Count:
    """Functions over the limit, their docstrings included."""
    told = [
        f"{each.path}:{node.lineno}: {node.name}, {node.end_lineno - node.lineno + 1}"
        for each in modules
        for node in ast.walk(each.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= LONGEST_FUNCTION
    ]
    return Count(f"functions over {LONGEST_FUNCTION} lines", str(len(told)), told)


def double_names(modules: Sequence[Module]) -> Count:
    """Names of public classes that mean two things."""
    where = defaultdict(list)
    for each, node in _classes(modules):
        if not node.name.startswith("_"):
            where[node.name].append(each.path)
    told = [
        f"{name}: {', '.join(paths)}" for name, paths in sorted(where.items()) if len(paths) > 1
    ]
    return Count("names of classes used for two things", str(len(told)), told)


def participles(modules: Sequence[Module]) -> Count:
    """Classes that are called by what was done to them."""
    told = [
        f"{each.path}:{node.lineno}: {node.name}"
        for each, node in _classes(modules)
        if _PARTICIPLE.match(node.name) and node.name not in _NO_PARTICIPLE
    ]
    return Count("classes named by participles", str(len(told)), told)


def _classes(modules: Sequence[Module]) -> Iterator[tuple[Module, ast.ClassDef]]:
    for each in modules:
        yield from ((each, n) for n in ast.walk(each.tree) if isinstance(n, ast.ClassDef))


def lines(modules: Sequence[Module]) -> Count:
    """Lines of all modules."""
    return Count(
        "lines of wpk, search and graph_passes", str(sum(e.text.count("\n") for e in modules)), []
    )


COUNTS: tuple[Callable[[Sequence[Module]], Count], ...] = (
    *(doors, imports, library_questions, tanh_tables, problem_switches),
    *(long_functions, double_names, participles, lines),
)

if __name__ == "__main__":
    main()
