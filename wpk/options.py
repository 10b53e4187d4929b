"""What ``wpk optimize`` can be asked: each option once, as a field whose words are its help text.

A run in the tuning store remembers these options, a plan the most of them; the command line declares its
flags from them, and `wpk.optimize` takes them as keywords. Nothing here imports what help need not load.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypedDict

from wpk.did_you_mean import choices_words
from wpk.errors import WpkError
from wpk.shape_ranges import ShapeRange, as_range

_ENTRY = re.compile(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)
"""An attribute of a docstring, as `inspect.cleandoc` leaves it."""


class OptionError(WpkError):
    """An option that does not exist."""

    exit_code = 2


class Options(TypedDict, total=False):
    """Keywords of `wpk.optimize`: the fields of `BuildOptions` and of `SearchOptions`, which say what they mean."""

    target: str
    precision: str
    shapes: Mapping[str, Sequence[object]]
    skip_passes: Sequence[str]
    skip_templates: Sequence[str]
    changed_sites: Sequence[str]
    fallback: str
    search: str
    effort: int
    budget: str | None
    seed: int
    operators: Sequence[str]
    prune: str
    forms: str


@dataclass(frozen=True)
class BuildOptions:
    """What a plan is to be, and to be made of; equal requests are equal, however they are written.

    Attributes:
        target: GPU to compile for (see `wpk targets`), its sm_XY, or a target file; auto (default):
            the GPU of this machine
        precision: what multiplications may use; fp32 is strict (default)
        shapes: shapes of inputs that the model leaves free; -1 keeps a batch free, and so do a smallest,
            fastest and largest shape (x:1x64:8x64:32x64), between which it may lie
        skip_passes: a graph pass not to run; repeatable
        skip_templates: a schedule template not to use; repeatable
        changed_sites: a place where passes decide otherwise than they do by rule, by its key in a plan or a report
            (PASS:DIGEST; PASS:* for all of a pass); the plan has the form that all of them make; repeatable
        fallback: on (default): ONNX Runtime executes what no kernel computes; off: such a model is
            refused
    """

    target: str = "auto"
    precision: str = field(default="fp32", metadata={"choices": ("fp32", "tf32", "fp16", "bf16")})
    shapes: dict[str, ShapeRange] = field(
        default_factory=dict, metadata={"metavar": "NAME:1x3x224x224[:OPT:MAX][,…]"}
    )
    skip_passes: tuple[str, ...] = field(
        default=(), metadata={"flag": "--skip-pass", "metavar": "NAME", "action": "append"}
    )
    skip_templates: tuple[str, ...] = field(
        default=(), metadata={"flag": "--skip-template", "metavar": "NAME", "action": "append"}
    )
    changed_sites: tuple[str, ...] = field(
        default=(), metadata={"flag": "--change-site", "metavar": "KEY", "action": "append"}
    )
    fallback: str = field(default="on", metadata={"choices": ("on", "off")})

    @property
    def falls_back(self) -> bool:
        """Whether ONNX Runtime may execute what no kernel computes."""
        return self.fallback == "on"

    def __post_init__(self) -> None:
        """Bring sequences into one form: tuples, those without an order of their own sorted."""
        object.__setattr__(self, "precision", str(self.precision))
        _require_choices(self)
        _require_names(self, "skip_passes", "skip_templates", "changed_sites")
        _require_shapes(self.shapes)
        object.__setattr__(self, "shapes", {n: as_range(n, s) for n, s in self.shapes.items()})
        object.__setattr__(self, "skip_passes", tuple(sorted(self.skip_passes)))
        object.__setattr__(self, "skip_templates", tuple(sorted(self.skip_templates)))
        object.__setattr__(self, "changed_sites", tuple(sorted({*self.changed_sites})))


@dataclass(frozen=True)
class SearchOptions:
    """How the candidates are found.

    Attributes:
        search: static: models choose; a searcher's name: it proposes and the GPU of this machine
            decides; auto (default): PPO where the target's GPU is here, else static
        effort: how thoroughly to measure: 0 a minute, 1 minutes (default), 2 half an hour, 3 to the
            end
        budget: what the run may take, from the model's file to its last check, e.g. 90s, 2h; measuring gets
            at least half of it; or how much is measured: '400 trials'
        seed: fixes the search (default: 0)
        operators: measure only operators of these names, e.g. 'conv_*'; the models choose for the
            others; repeatable
        prune: what narrows a template's schedules down before a search: waves (default), a model that
            keeps the winners; pul: DeepCuts' score as its equations say, the best hundredth
        forms: search: operators are joined, or kept apart, as is fastest; fixed: as the passes join
            them; auto (default): search where all operators are measured, else fixed
    """

    search: str = field(
        default="auto",
        metadata={
            "choices": ("auto", "static", "genetic", "ppo", "evolution", "random", "exhaustive")
        },
    )
    effort: int = field(default=1, metadata={"type": int, "choices": range(4)})
    budget: str | None = field(default=None, metadata={"metavar": "30m"})
    seed: int = field(default=0, metadata={"type": int, "metavar": "N"})
    operators: tuple[str, ...] = field(
        default=(), metadata={"flag": "--ops", "metavar": "GLOB", "action": "append"}
    )
    prune: str = field(default="waves", metadata={"choices": ("waves", "pul")})
    forms: str = field(default="auto", metadata={"choices": ("auto", "fixed", "search")})

    def __post_init__(self) -> None:
        """Let any sequence of patterns do."""
        _require_choices(self)
        _require_names(self, "operators")
        object.__setattr__(self, "operators", tuple(self.operators))


@dataclass(frozen=True)
class TensorRTOptions:
    """How TensorRT builds, where it is asked for an engine (--engine tensorrt).

    Attributes:
        timing_cache: file in which TensorRT keeps what it has timed, to time it only once; written
            where it is missing
        version_compatible: let newer versions of TensorRT load the engine, too
        hardware_compatible: let other GPUs load the engine: ampere+ (any from Ampere on),
            same-capability (those of this compute capability), or none (default)
        optimization_level: how long TensorRT may search, 0 to 5; TensorRT's own default is 3
        workspace: most MiB that a layer may use beside its tensors; default: all of the GPU
        plugin_library: libwpk_tensorrt.so, through which generated kernels take part; none:
            TensorRT's own layers only, as always with TensorRT for RTX
    """

    timing_cache: Path | None = field(default=None, metadata={"type": Path, "metavar": "FILE"})
    version_compatible: bool = field(
        default=False, metadata={"action": "store_true", "default": None}
    )
    hardware_compatible: str = field(
        default="none", metadata={"choices": ("none", "ampere+", "same-capability")}
    )
    optimization_level: int | None = field(
        default=None, metadata={"type": int, "choices": range(6)}
    )
    workspace: int | None = field(default=None, metadata={"type": int, "metavar": "MIB"})
    plugin_library: Path | None = field(default=None, metadata={"type": Path, "metavar": "FILE"})


def _require_choices(options: Any) -> None:
    """Refuse a value that is none of a field's choices.

    Raises:
        OptionError: There is one; names the choices, the nearest first.
    """
    for each in fields(options):
        value, choices = getattr(options, each.name), each.metadata.get("choices")
        if choices is not None and value not in choices and value is not None:
            known = [str(choice) for choice in choices]
            raise OptionError(f"{each.name} is {value!r}", fix=choices_words(str(value), known))


def _require_names(options: Any, *names: str) -> None:
    """Refuse a text where a sequence of names is asked for: it would be taken for its letters.

    Raises:
        OptionError: There is one.
    """
    for name in names:
        value = getattr(options, name)
        if isinstance(value, str):
            raise OptionError(
                f"{name} is the text {value!r}", fix=f"give a list: {name}=[{value!r}]"
            )


def _require_shapes(shapes: object) -> None:
    """Refuse what is no mapping from names of inputs to whole numbers.

    Raises:
        OptionError: It is none.
    """
    right = isinstance(shapes, Mapping) and all(
        isinstance(shape, Sequence) and not isinstance(shape, str | bytes)
        for shape in shapes.values()
    )
    if not right:
        raise OptionError(
            f"shapes is {shapes!r}",
            fix="give sizes by name of the input: shapes={'x': (1, 3, 224, 224)}",
        )


def flag_of(option: Field[Any]) -> str:
    """The flag of the command line, e.g. ``--skip-pass``."""
    return str(option.metadata.get("flag", f"--{option.name.replace('_', '-')}"))


def help_of(options: type) -> dict[str, str]:
    """The help text of every option, by the name of its field."""
    text = inspect.cleandoc(options.__doc__ or "")
    return {name: " ".join(words.split()) for name, words in _ENTRY.findall(text)}


def split_options(given: Mapping[str, Any]) -> tuple[BuildOptions, SearchOptions]:
    """Keywords, as `wpk.optimize` takes them, as options; sequences become tuples.

    Raises:
        OptionError: There is no such option; names those that exist.
    """
    kinds = BuildOptions, SearchOptions
    known = [[each.name for each in fields(kind)] for kind in kinds]
    unknown = sorted(set(given).difference(*known))
    if unknown:
        raise OptionError(
            f"there is no option {', '.join(map(repr, unknown))}",
            fix=choices_words(unknown[0], known[0] + known[1]),
        )
    build, search = ({n: given[n] for n in names if n in given} for names in known)
    return BuildOptions(**build), SearchOptions(**search)


def keywords(build: BuildOptions, search: SearchOptions) -> dict[str, Any]:
    """Options as keyword arguments of `wpk.optimize`."""
    return {**asdict(build), **asdict(search)}
