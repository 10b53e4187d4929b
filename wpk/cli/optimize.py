"""Turn an ONNX model into a plan.

Example:
    wpk optimize resnet18.onnx -o resnet18.plan --target h200 --precision fp16
"""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("model", type=Path, metavar="MODEL.onnx")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="MODEL.plan")
    parser.add_argument(
        "--target",
        default="auto",
        help="GPU to compile for (see `wpk targets`), its sm_XY, or a target file; "
        "auto: the GPU of this machine",
    )
    parser.add_argument(
        "--precision",
        choices=("fp32", "tf32", "fp16", "bf16"),
        default="fp32",
        help="what multiplications may use; fp32 is strict (default)",
    )
    parser.add_argument(
        "--shapes",
        metavar="NAME:1x3x224x224[,…]",
        help="shapes of inputs that the model leaves free; -1 keeps a batch free",
    )
    parser.add_argument(
        "--skip-pass",
        action="append",
        default=[],
        metavar="NAME",
        help="a graph pass not to run; repeatable",
    )
    parser.add_argument(
        "--search",
        choices=("auto", "static", "genetic", "ppo", "evolution", "random", "exhaustive"),
        default="auto",
        help="static: models choose; a searcher's name: it proposes and the GPU of this machine "
        "decides; auto (default): genetic and PPO where the target's GPU is here, else static",
    )
    parser.add_argument(
        "--effort",
        type=int,
        choices=range(4),
        default=1,
        help="how thoroughly to measure: 0 a minute, 1 minutes (default), 2 half an hour, 3 to the end",
    )
    parser.add_argument(
        "--budget", metavar="30m", help="what measuring may cost, e.g. 90s, 2h or '400 trials'"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="fixes the search")
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="FOLDER",
        help="compiled kernels and measured trials; default: the user's cache. An interrupted search "
        "goes on from what is there",
    )
    parser.add_argument(
        "--check",
        choices=("on", "off"),
        default="on",
        help="execute and compare every kernel on the CPU before the plan is written (default: on)",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE.html|.json|.md",
        help="also write the report, in the form that the name ends in",
    )


def run(arguments: argparse.Namespace) -> int:
    """Optimize, and print what was chosen."""
    from wpk.cli.progress import Progress
    from wpk.free_shapes import parse_shapes
    from wpk.pipeline import optimize
    from wpk.report.formats import require_format, write_report
    from wpk.report.terminal import summary

    if arguments.report is not None:
        require_format(arguments.report)
    bundle = optimize(
        arguments.model,
        arguments.output,
        target=arguments.target,
        precision=arguments.precision,
        shapes=None if arguments.shapes is None else parse_shapes(arguments.shapes),
        skip_passes=arguments.skip_pass,
        cache=arguments.cache,
        search=arguments.search,
        effort=arguments.effort,
        budget=arguments.budget,
        seed=arguments.seed,
        check=arguments.check == "on",
        progress=Progress(),
    )
    print(summary(bundle.plan))
    print(f"\nplan: {arguments.output}")
    if arguments.report is not None:
        write_report(arguments.report, bundle)
        print(f"report: {arguments.report}")
    return 0
