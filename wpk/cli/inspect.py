"""Say what is inside a model or a plan.

Examples:
    wpk inspect resnet18.onnx
    wpk inspect resnet18.plan --source conv_relu_0
"""

import argparse
from pathlib import Path

from wpk.cli.say import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("file", type=Path, metavar="MODEL|PLAN")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="everything, for programs")
    form.add_argument(
        "--source", metavar="OPERATOR", help="the generated CUDA of one operator of a plan"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what the file holds."""
    import zipfile

    if zipfile.is_zipfile(arguments.file) or arguments.file.suffix != ".onnx":
        return _plan(arguments)
    return _model(arguments)


def _plan(arguments: argparse.Namespace) -> int:
    import json

    from wpk.codec import encode
    from wpk.plan import Plan, read_plan
    from wpk.report.terminal import operator_source, summary

    bundle = read_plan(arguments.file)
    if arguments.source is not None:
        say(operator_source(bundle, arguments.source))
    elif arguments.json:
        print(json.dumps(encode(bundle.plan, Plan)))
    else:
        say(summary(bundle.plan))
    return 0


def _model(arguments: argparse.Namespace) -> int:
    from wpk.errors import EngineError
    from wpk.report.model import model_json, model_text

    if arguments.source is not None:
        raise EngineError(
            f"{arguments.file} is a model; only plans hold generated sources",
            fix="write a plan first: wpk optimize",
        )
    if arguments.json:
        print(model_json(arguments.file))
    else:
        say(model_text(arguments.file))
    return 0
