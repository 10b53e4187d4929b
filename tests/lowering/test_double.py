"""Which operators of a model are computed in fp64, and which nodes are fused with which."""

from pathlib import Path

import onnx
import pytest
from onnx import numpy_helper

from wpk.dtypes import ASKED, DType, Precision
from wpk.errors import UnsupportedError
from wpk.expression import In
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.model import lower_model
from wpk.problems import Elementwise, Matmul, Normalisation, Pooling, Reduction


def lowered(folder: Path, text: str, precision: Precision = Precision.FP32) -> LoweredModel:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {text}')
    onnx.save(model, folder / "model.onnx")
    return lower_model(folder / "model.onnx", {}, precision)


def kinds(model: LoweredModel) -> list[tuple[str, DType]]:
    """The kind of each operator, and what it computes in."""
    problems = [each.problem for each in model.program.operators]
    return [(type(each).__name__, each.numbers) for each in problems]


PRODUCT = """g (double[N, 6] x, double[6, 5] w, double[5] b) => (double[N, 5] y)
    { m = MatMul (x, w)  s = Add (m, b)  y = Relu (s) }"""


@pytest.mark.parametrize("precision", ASKED)
def test_products_stay_in_fp64_whatever_is_asked_for(precision: Precision, tmp_path: Path) -> None:
    (operator,) = lowered(tmp_path, PRODUCT, precision).program.operators
    problem = operator.problem
    assert isinstance(problem, Matmul)
    assert problem.precision is Precision.FP64
    assert problem.numbers is DType.FP64
    assert {each.tensor.dtype for each in problem.reads() if each is not None} == {DType.FP64}


def test_what_comes_before_and_behind_is_computed_together(tmp_path: Path) -> None:
    model = lowered(
        tmp_path,
        """g (float[N, 6] x) => (float[N, 1] y) <int64[1] a = {1}>
        { d = Cast<to = 11> (x)  e = Exp (d)  s = ReduceSum (e, a)  l = Log (s)  y = Cast<to = 1> (l) }""",
    )
    (operator,) = model.program.operators
    problem = operator.problem
    assert isinstance(problem, Reduction)
    assert isinstance(problem.prologue, In)
    assert isinstance(problem.epilogue.expression, In)
    assert problem.inputs[0].dtype is DType.FP32
    assert problem.y.dtype is DType.FP32


def test_fp32_is_not_drawn_into_fp64(tmp_path: Path) -> None:
    """Neither a product in front of a Cast to it, nor what follows one back."""
    model = lowered(
        tmp_path,
        """g (float[N, 6] x, float[6, 5] w) => (float[N, 5] y)
        { m = MatMul (x, w)  d = Cast<to = 11> (m)  e = Exp (d)  c = Cast<to = 1> (e)  r = Relu (c)
          y = Mul (r, r) }""",
    )
    fp32, fp64 = DType.FP32, DType.FP64
    assert kinds(model) == [("Matmul", fp32), ("Elementwise", fp64), ("Elementwise", fp32)]


def test_a_cast_alone_is_a_copy_that_converts(tmp_path: Path) -> None:
    model = lowered(tmp_path, "g (double[N, 6] x) => (float16[N, 6] y) { y = Cast<to = 10> (x) }")
    (operator,) = model.program.operators
    assert isinstance(operator.problem, Elementwise)
    assert operator.problem.words() == "cast fp64→fp16 6"


def test_attention_is_computed_operator_by_operator(tmp_path: Path) -> None:
    model = lowered(
        tmp_path,
        """g (double[N, 2, 7, 8] q, double[N, 2, 8, 7] k, double[N, 2, 7, 8] v) => (double[N, 2, 7, 8] y)
        { s = MatMul (q, k)  p = Softmax<axis = -1> (s)  y = MatMul (p, v) }""",
    )
    found = [type(each.problem) for each in model.program.operators]
    assert found == [Matmul, Normalisation, Matmul]


def test_an_epsilon_of_fp64_is_not_rounded_to_an_attribute(tmp_path: Path) -> None:
    """1e-5 in fp64 is no number that a LayerNormalization can have."""
    model = lowered(
        tmp_path,
        """g (double[N, 33] x) => (double[N, 33] y) <int64[1] a = {1}, double e = {0.00001}>
        { m = ReduceMean (x, a)  d = Sub (x, m)  q = Mul (d, d)  v = ReduceMean (q, a)  w = Add (v, e)
          r = Sqrt (w)  y = Div (d, r) }""",
    )
    assert all(not isinstance(each.problem, Normalisation) for each in model.program.operators)


def test_constants_keep_their_digits(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 18]> g (double[N, 2] x) => (double[N, 2] y)'
        "{ y = Mul (x, c) }"
    )
    array = numpy_helper.to_array(onnx.helper.make_tensor("c", 11, [2], [0.1, 1e300]))
    model.graph.initializer.append(numpy_helper.from_array(array, "c"))
    onnx.save(model, tmp_path / "model.onnx")
    program = lower_model(tmp_path / "model.onnx", {}, Precision.FP16).program
    (constant,) = program.constants.values()
    assert constant.dtype == array.dtype
    assert constant.tolist() == [0.1, 1e300]


def test_a_convolution_is_a_product(tmp_path: Path) -> None:
    text = """g (double[1, 1, 2, 2] x) => (double[1, 1, 1, 2] y) <double[1, 1, 2, 1] w = {0.1, 0.2}>
        { y = Conv (x, w) }"""
    (product,) = [each.problem for each in lowered(tmp_path, text).program.operators[-1:]]
    assert isinstance(product, Matmul)
    assert product.precision is Precision.FP64


POOLED = (
    "g (double[1, 2, 4, 4] x) => (double[1, 2, 2, 2] y) { y = MaxPool<kernel_shape = [3, 3]> (x) }"
)


def test_a_kind_without_fp64_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Pooling, "carries_double", False)
    with pytest.raises(UnsupportedError, match="fp64, which no kernel of this kind takes"):
        lowered(tmp_path, POOLED)


WEIGHTS = "double[1, 4, 2] w, double[1, 4, 4] r"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (POOLED, "Pooling"),
        (
            """g (double[1, 2, 4, 4] x) => (double[1, 2, 8, 8] y) <float[4] s = {1.0, 1.0, 2.0, 2.0}>
            { y = Resize<mode = "linear"> (x, , s) }""",
            "Resize",
        ),
        (
            f"""g (double[3, 2, 2] x, {WEIGHTS}) => (double[3, 1, 2, 4] y)
            {{ y = RNN<hidden_size = 4> (x, w, r) }}""",
            "Recurrence",
        ),
        (
            """g (double[1, 2, 4, 4] x, double[3, 4] r, int64[3] b) => (double[3, 2, 2, 2] y)
            { y = RoiAlign<output_height = 2, output_width = 2> (x, r, b) }""",
            "RoiAlign",
        ),
        ("g (double[3, 4, 4] x) => (double[3] y) { y = Det (x) }", "Determinant"),
    ],
)
def test_windows_steps_and_matrices_are_computed_in_fp64(
    text: str, kind: str, tmp_path: Path
) -> None:
    assert (kind, DType.FP64) in kinds(lowered(tmp_path, text, Precision.FP16))
