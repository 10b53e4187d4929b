"""Draw networks of timm's list, and choose networks of the zoo, by the commit that is measured: once.

    python benchmarks/draw_zoo.py COMMIT

Needs timm and torch's exporter. A network of timm is skipped where it has more parameters than are allowed, or
where torch cannot export it; what was skipped, and why, is in the file. A family is a module of timm; networks
that timm makes for its own tests are none of its list.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import subprocess
import sys
import tempfile
from pathlib import Path

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from zoo import drawing
from zoo.catalogue import DRAWN_PREFIX, zoo

SECONDS = 300.0
"""After which an export is given up."""

_PACKAGES = ("timm", "torch", "onnxscript")


def main() -> int:
    """Draw, and write what was drawn."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("commit", help="that is measured: at least eight hexadecimal digits")
    parser.add_argument("--output", type=Path, default=drawing.DRAWN, metavar="FILE.json")
    options = parser.parse_args()
    if options.output.exists():
        raise SystemExit(f"{options.output} is there: it is drawn once")
    try:
        chosen = drawing.chosen(options.commit, list(zoo()))
    except ValueError:
        raise SystemExit(f"{options.commit} does not begin with eight hexadecimal digits") from None
    drawn, skipped = drawing.drawn(options.commit, _families(), _why_not)
    versions = {each: importlib.metadata.version(each) for each in _PACKAGES}
    drawing.keep(drawing.Draw(options.commit, chosen, drawn, skipped, versions), options.output)
    print(
        f"chosen: {' '.join(chosen)}\ndrawn: {' '.join(drawn)}\n{len(skipped)} skipped: {options.output}"
    )
    return 0


def _families() -> dict[str, list[str]]:
    import timm

    found = {module: timm.list_models(module=module) for module in timm.list_modules()}
    named = {
        module: [name for name in names if not name.startswith("test_")]
        for module, names in found.items()
    }
    return {module: names for module, names in named.items() if names}


def _why_not(name: str) -> str:
    import torch
    from zoo.of_timm import build

    try:
        with torch.device("meta"):
            module = build(name)
    except Exception as error:  # whatever a library raises is why
        return f"not built: {_last(str(error))}"
    parameters = sum(each.numel() for each in module.parameters())
    if parameters > drawing.MOST_PARAMETERS:
        return f"{parameters / 1e6:.0f} M parameters"
    return _why_not_exported(name)


def _why_not_exported(name: str) -> str:
    script = Path(__file__).with_name("export_zoo.py")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(script), DRAWN_PREFIX + name, f"{folder}/model.onnx"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"not exported within {SECONDS:.0f} s"
    why = "" if done.returncode == 0 else f"not exported: {_last(done.stderr)}"
    sys.stderr.write(f"{name}: {why or 'exported'}\n")
    return why


def _last(text: str) -> str:
    """The last line of what was said, shortened."""
    return (text.strip().splitlines() or ["it was killed"])[-1][:200]


if __name__ == "__main__":
    sys.exit(main())
