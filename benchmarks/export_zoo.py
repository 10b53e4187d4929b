"""Export a network of the zoo, or one of timm's list, at a fixed batch.

    python benchmarks/export_zoo.py resnet models/resnet.onnx --batch 32
    python benchmarks/export_zoo.py drawn.tf_efficientnet_lite0 models/lite.onnx

Weights are drawn from a seed, statistics of batch normalisations are those of random inputs. The file is
compared with the module by ONNX Runtime. Beside the file lie the module's weights.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from zoo.catalogue import find
from zoo.exporting import ALLOWED, export


def main() -> int:
    """Write one network to a file; print what is known of it as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("network", help="a family of the zoo, or drawn.NAME of timm's list")
    parser.add_argument("output", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        architecture = find(options.network).architecture
    except KeyError:
        raise SystemExit(f"no network of the zoo is called {options.network}") from None
    error = export(architecture, options.batch, options.output, options.seed)
    size = options.output.stat().st_size
    print(json.dumps({"bytes": size, "error": error, "allowed": ALLOWED}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
