"""What wpk's own code uses of TensorRT's Python module, read off its syntax: a new use is found by itself."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

KINDS = {
    "builder": "Builder",
    "network": "INetworkDefinition",
    "parser": "OnnxParser",
    "config": "IBuilderConfig",
    "runtime": "Runtime",
    "engine": "ICudaEngine",
    "context": "IExecutionContext",
    "inspector": "EngineInspector",
    "registry": "IPluginRegistry",
    "optimization": "IOptimizationProfile",
    "cache": "ITimingCache",
    "refusal": "ParserError",
    "layer": "ILayer",
    "activation": "IActivationLayer",
    "convolution": "IConvolutionLayer",
    "normalization": "INormalizationLayer",
    "shuffle": "IShuffleLayer",
    "softmax": "ISoftMaxLayer",
}
"""The class of what our code calls so, in the files of `SPEAKING`; a leading underscore aside."""

SPEAKING = (
    "libraries/tensorrt.py",
    "libraries/tensorrt_layers.py",
    "libraries/tensorrt_network.py",
    "nvinfer/session.py",
    "tensorrt/build.py",
    "tensorrt/configuration.py",
    "tensorrt/profiles.py",
    "tensorrt/hosting/network_layers.py",
    "tensorrt/hosting/plugin_library.py",
    "tensorrt/hosting/support.py",
)
"""Files that hold TensorRT's objects; others at most name its module."""

OURS = {"reported", "raise_kept", "taken"}
"""Methods of our subclasses that only we call."""

RTX_ONLY = {"ComputeCapability", "num_compute_capabilities", "set_compute_capability"}
"""Used behind the question whether it is TensorRT for RTX, which alone has them."""


@dataclass(frozen=True)
class Use:
    """A name of TensorRT's that a line asks for, from the module on.

    Attributes:
        where: File and line.
        path: E.g. ``("Builder", "create_network")``.
        arguments: How many it is called with; None where it is not called, or with a sequence.
    """

    where: str
    path: tuple[str, ...]
    arguments: int | None = None


def uses_in(source: str, name: str) -> Iterator[Use]:
    """Every use in a file's text.

    Args:
        source: The text.
        name: Of the file.
    """
    tree = ast.parse(source)
    aliases = _aliases(tree)
    kinds = KINDS if name.removeprefix("wpk/") in SPEAKING else {}
    counts = {
        id(node.func): len(node.args) + len(node.keywords)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and not any(isinstance(a, ast.Starred) for a in node.args)
    }
    for node in ast.walk(tree):
        where = f"{name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Attribute):
            path = _path(node, aliases, kinds)
            if path is not None and not path[-1].startswith("__"):
                yield Use(where, path, counts.get(id(node)))
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "_member"
        ):
            enum, member = (_constant(each) for each in node.args[1:3])
            if enum is not None:
                yield Use(where, (enum,) if member is None else (enum, member))
        elif isinstance(node, ast.ClassDef):
            for base in node.bases:
                path = _path(base, aliases, {})
                if path is not None:
                    for method in _overrides(node):
                        yield Use(where, (*path, method))


def _overrides(node: ast.ClassDef) -> Iterator[str]:
    """Methods that TensorRT calls: those that are neither ours alone nor Python's."""
    for each in node.body:
        if (
            isinstance(each, ast.FunctionDef)
            and not each.name.startswith("_")
            and each.name not in OURS
        ):
            yield each.name


def _aliases(tree: ast.AST) -> dict[str, tuple[str, ...]]:
    """Local names of what the module holds, e.g. ``kinds = module.PluginFieldType``."""
    found: dict[str, tuple[str, ...]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            pairs = [(node.targets[0], node.value)]
            if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(node.targets[0].elts, node.value.elts, strict=False))
            for target, value in pairs:
                path = _path(value, {}, {})
                is_name = isinstance(target, ast.Name) and target.id != "module"
                if is_name and path is not None and len(path) == 1 and path[0][0].isupper():
                    found[target.id] = path  # type: ignore[attr-defined]
    return found


def _path(
    node: ast.AST, aliases: dict[str, tuple[str, ...]], kinds: Mapping[str, str]
) -> tuple[str, ...] | None:
    """The names from the module to an attribute; None where it is no attribute of TensorRT's."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        owner = node.value
        names.insert(0, node.attr)
        if isinstance(owner, ast.Name) and owner.id in aliases:
            return (*aliases[owner.id], *names)
        label = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        if label == "module":
            return tuple(names)
        if label.removeprefix("_") in kinds and _is_bare(owner):
            return (kinds[label.removeprefix("_")], *names)
        node = owner
    return None


def _is_bare(owner: ast.AST) -> bool:
    """Whether it is a local name or an attribute of self."""
    if isinstance(owner, ast.Attribute):
        return isinstance(owner.value, ast.Name) and owner.value.id == "self"
    return isinstance(owner, ast.Name)


def _constant(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def uses_of(folders: Sequence[Path], root: Path) -> list[Use]:
    """Every use in the files of folders."""
    return [
        use
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        for use in uses_in(path.read_text(encoding="utf-8"), str(path.relative_to(root)))
    ]
