"""What Python sees of wpk: names, words of errors, models in memory, what engines and plans say of themselves."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import wpk
from wpk.options import BuildOptions, Options, SearchOptions

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
small (float[batch, 8] x) => (float[batch, 5] y) { l = MatMul(x, m) y = Relu(l) }
"""


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    """A product and a ReLU, with a free batch."""
    proto = onnx.parser.parse_model(MODEL)
    values = np.random.default_rng(0).standard_normal((8, 5)).astype(np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(values, "m"))
    return proto


@pytest.fixture(scope="module")
def path(model: onnx.ModelProto, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its plan, which is made from the model in memory."""
    path = tmp_path_factory.mktemp("interface") / "small.plan"
    wpk.optimize(model, path, target="h200", check="off")
    return path


def test_everything_offered_is_there_and_listed() -> None:
    assert set(wpk.__all__) <= set(dir(wpk))
    for name in wpk.__all__:
        assert getattr(wpk, name) is not None
    assert "Any" not in dir(wpk)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = wpk.nothing  # type: ignore[attr-defined]


@pytest.mark.slow
def test_type_checkers_see_the_interface(tmp_path: Path) -> None:
    program = tmp_path / "uses_wpk.py"
    program.write_text(
        "import wpk\n"
        "reveal_type(wpk.load('a'))\n"
        "reveal_type(wpk.WpkError('a', fix='b').fix)\n"
        "wpk.optimize('a', 'b', targt='h200')\n"
    )
    command = [sys.executable, "-m", "mypy", "--cache-dir", tmp_path / "cache", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert 'Revealed type is "wpk.engine.engine.Engine"' in done.stdout, done.stdout
    assert 'Revealed type is "str"' in done.stdout.replace("builtins.", "")
    assert 'Unexpected keyword argument "targt"' in done.stdout


def test_the_keywords_of_optimize_are_the_options() -> None:
    fields = {**BuildOptions.__dataclass_fields__, **SearchOptions.__dataclass_fields__}
    assert set(Options.__annotations__) == set(fields)


def test_an_error_says_what_to_do() -> None:
    error = wpk.WpkError("it is wet", fix="dry it")
    assert str(error) == "it is wet\n  fix: dry it"


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"precision": "int8"}, "precision is 'int8'"),
        ({"precision": "fp61"}, "did you mean 'fp16'"),
        ({"check": "never"}, "check is 'never'"),
        ({"search": "genetics"}, "did you mean 'genetic'"),
        ({"effort": 9}, "there are 0, 1, 2, 3"),
        ({"targt": "h200"}, "did you mean 'target'"),
        ({"shapes": "x:1x8"}, "shapes={'x'"),
        ({"skip_passes": "fuse"}, "skip_passes=['fuse']"),
        ({"skip_passes": ["fold_batch"]}, "did you mean"),
        ({"example_inputs": (1,)}, "not as a module"),
    ],
)
def test_wrong_arguments_of_optimize_are_told_in_words(
    model: onnx.ModelProto, tmp_path: Path, keywords: dict[str, Any], words: str
) -> None:
    arguments: dict[str, Any] = {"target": "h200", **keywords}
    with pytest.raises(wpk.WpkError, match=words.replace("[", r"\[").replace("{", r"\{")):
        wpk.optimize(model, tmp_path / "x.plan", **arguments)
    assert not (tmp_path / "x.plan").exists()


@pytest.mark.parametrize(("given", "words"), [(3, "given as int"), (b"no model", "8 bytes")])
def test_what_is_no_model_is_told_in_words(tmp_path: Path, given: Any, words: str) -> None:
    with pytest.raises(wpk.GraphError, match=words):
        wpk.optimize(given, tmp_path / "x.plan", target="h200")


def test_what_is_no_plan_is_told_in_words(path: Path) -> None:
    with pytest.raises(wpk.PlanError, match="given as bytes"):
        wpk.load(path.read_bytes())  # type: ignore[arg-type]
    with pytest.raises(wpk.EngineError, match="did you mean 'gpu'"):
        wpk.load(path, device="cuda")


def test_a_model_in_memory_gives_the_plan_of_its_file(
    model: onnx.ModelProto, path: Path, tmp_path: Path
) -> None:
    file = tmp_path / "small.onnx"
    file.write_bytes(model.SerializeToString(deterministic=True))
    for number, given in enumerate((file, model.SerializeToString(deterministic=True))):
        again = tmp_path / f"{number}.plan"
        wpk.optimize(given, again, target="h200", check="off")
        assert again.read_bytes() == path.read_bytes()


def test_a_module_is_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch is stood in for: what its exporter is asked for, and that its file is what is read."""
    asked: dict[str, Any] = {}

    class Module:
        def eval(self) -> "Module":
            return self

    class Net(Module):
        pass

    class Exporter:
        @staticmethod
        def export(module: object, args: object, path: str, **options: Any) -> None:
            asked.update(module=module, args=args, **options)
            proto = onnx.parser.parse_model(
                MODEL.replace("m)", "x)").replace("[batch, 8]", "[8, 8]")
            )
            proto.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 8
            proto.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 8
            onnx.save(proto, path)

    class Torch:
        nn = type("nn", (), {"Module": Module})
        onnx = Exporter

    monkeypatch.setitem(sys.modules, "torch", Torch)  # type: ignore[arg-type]
    net, example = Net(), object()
    with pytest.raises(wpk.GraphError, match="Net is a module without example_inputs"):
        wpk.optimize(net, tmp_path / "x.plan", target="h200")
    bundle = wpk.optimize(
        net, tmp_path / "x.plan", example_inputs=(example,), target="h200", check="off"
    )
    assert asked["module"] is net
    assert asked["args"] == (example,)
    assert bundle.plan.provenance.model == "Net.onnx"


def test_an_engine_says_what_it_is_and_is_called(path: Path) -> None:
    with wpk.load(wpk.read_plan(path), device="cpu") as engine:
        assert [port.name for port in engine.inputs] == ["x"]
        assert [port.name for port in engine.outputs] == ["y"]
        assert "'x' fp32[batch, 8] -> 'y' fp32[batch, 5]" in repr(engine)
        given = {"x": np.ones((2, 8), np.float32)}
        np.testing.assert_array_equal(engine(given)["y"], engine.run(given)["y"])
        for slip in (given["x"], [given["x"]]):
            with pytest.raises(wpk.EngineError, match="by name"):
                engine.run(slip)  # type: ignore[arg-type]


def test_plans_are_shown_in_a_line(path: Path) -> None:
    bundle = wpk.read_plan(path)
    for shown in (repr(bundle), repr(bundle.plan)):
        assert "small.onnx for h200 (sm_90a), fp32" in shown
        assert len(shown) < 200


def test_verify_takes_inputs_and_tolerances(model: onnx.ModelProto, path: Path) -> None:
    given = {"x": np.ones((3, 8), np.float32)}
    how: dict[str, Any] = {"device": "cpu", "check": "quick", "inputs": [given]}
    found = wpk.verify(path, model, **how)
    assert found.passed
    assert any("given inputs 1" in check.name for check in found.checks.whole)
    assert "right" in repr(found)
    with pytest.raises(wpk.VerificationError, match="the numbers disagree"):
        wpk.verify(path, model, **how, rtol=0.0, atol=0.0)
    with pytest.raises(wpk.EngineError, match="rtol is -1"):
        wpk.verify(path, model, **how, rtol=-1)


def test_verify_against_another_model_is_no_disagreement_of_numbers(
    model: onnx.ModelProto, path: Path
) -> None:
    other = onnx.ModelProto()
    other.CopyFrom(model)
    other.graph.node[1].op_type = "Sigmoid"
    with pytest.raises(wpk.WpkError, match="not made from this model") as raised:
        wpk.verify(path, other, device="cpu")
    assert not isinstance(raised.value, wpk.VerificationError)
    assert raised.value.exit_code == 2
