"""Say what is inside a model or a plan.

Examples:
    wpk inspect resnet18.onnx
    wpk inspect resnet18.plan --source conv_relu_0
"""

import argparse
import json
import zipfile
from pathlib import Path

from wpk.cli.say import say
from wpk.errors import EngineError


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
    from wpk.plan import tool_for

    tool = tool_for(arguments.file)
    if tool is not None:
        _engine(arguments, tool)
    elif zipfile.is_zipfile(arguments.file) or arguments.file.suffix != ".onnx":
        _plan(arguments)
    else:
        _model(arguments)
    return 0


def _plan(arguments: argparse.Namespace) -> None:
    from wpk.codec import encode
    from wpk.plan import Plan, read_plan
    from wpk.report.plans import operator_source, summary

    bundle = read_plan(arguments.file)
    if arguments.source is not None:
        say(operator_source(bundle, arguments.source))
    elif arguments.json:
        print(json.dumps(encode(bundle.plan, Plan)))
    else:
        say(*summary(bundle))


def _engine(arguments: argparse.Namespace, tool: str) -> None:
    from wpk.report import engine_text
    from wpk.tensorrt import read_sidecar

    if arguments.source is not None:
        raise EngineError(
            f"{arguments.file} is an engine of TensorRT; only plans hold generated sources",
            fix="write a plan of wpk's own: wpk optimize --engine wpk",
        )
    told = read_sidecar(arguments.file)
    if arguments.json:
        print(json.dumps(told))
    else:
        say(*engine_text(told), f"{tool} executes it")


def _model(arguments: argparse.Namespace) -> None:
    from wpk.cli.model_text import model_json, model_text

    if arguments.source is not None:
        raise EngineError(
            f"{arguments.file} is a model; only plans hold generated sources",
            fix="write a plan first: wpk optimize",
        )
    if arguments.json:
        print(model_json(arguments.file))
    else:
        say(*model_text(arguments.file))
