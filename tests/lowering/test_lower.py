"""Lowered operators, executed in NumPy, compute what ONNX Runtime computes on the model; and what lowering says of models."""

from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest
from support.networks.lowered_text import Execute, compare, kinds, lowered

from wpk.dtypes import Precision
from wpk.errors import UnsupportedError
from wpk.lowering.model import lower_model
from wpk.problems import Convolution, Elementwise, Gather, Matmul, Normalisation

CONV = """
agraph (float[N,6,9,11] x, float[8,3,3,3] w1, float[8] wb, float[8,8,1,1] w2) => (float[N,8,a,b] y) {
  c = Conv<group=2, dilations=[2,1], pads=[1,0,2,1], strides=[2,1]>(x, w1, wb)
  r = Relu(c)
  d = Conv(r, w2)
  y = Add(d, r)
}"""


@pytest.mark.parametrize("batch", [1, 3])
def test_grouped_dilated_convolution_with_residual_at_a_free_batch(
    tmp_path: Path, execute: Execute, batch: int
) -> None:
    model, source = lowered(tmp_path, CONV)
    assert kinds(model)[:2] == ["Convolution", "Convolution"]
    compare(execute, model, source, batch)


@pytest.mark.parametrize(
    "body",
    [
        "y = ConvTranspose<group=2, strides=[2,3], pads=[1,0,0,2], output_padding=[1,1]>(x, w1)",
        "y = ConvTranspose<group=2, strides=[2,2], output_shape=[19,21]>(x, w1)",
        'y = ConvTranspose<group=2, strides=[2,2], auto_pad="SAME_UPPER">(x, w1)',
    ],
)
def test_transposed_convolutions(tmp_path: Path, execute: Execute, body: str) -> None:
    text = f"agraph (float[2,6,9,10] x, float[6,4,3,3] w1) => (float[2,8,a,b] y) {{ {body} }}"
    compare(execute, *lowered(tmp_path, text))


@pytest.mark.parametrize(
    "body",
    [
        "y = MaxPool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1, pads=[1,0,0,1]>(x)",
        'y = MaxPool<kernel_shape=[3,2], strides=[2,1], auto_pad="SAME_LOWER">(x)',
        "y = AveragePool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1, count_include_pad=1, pads=[1,1,1,1]>(x)",
        "y = AveragePool<kernel_shape=[2,3], strides=[1,2], pads=[0,1,1,1]>(x)",
        "y = GlobalAveragePool(x)",
    ],
)
def test_pooling_attributes(tmp_path: Path, execute: Execute, body: str) -> None:
    text = f"agraph (float[N,5,10,9] x) => (float[N,5,a,b] y) {{ {body} }}"
    compare(execute, *lowered(tmp_path, text), batch=3)


def test_squeeze_excite(tmp_path: Path, execute: Execute) -> None:
    text = """agraph (float[N,12,6,6] x, float[12,12,3,3] w0, float[4,12,1,1] w1, float[4] wb1, float[12,4,1,1] w2, float[12] wb2) => (float[N,12,6,6] y) {
      a = Conv<pads=[1,1,1,1]>(x, w0)
      g = GlobalAveragePool(a)
      s = Conv(g, w1, wb1)
      t = Relu(s)
      u = Conv(t, w2, wb2)
      v = Sigmoid(u)
      y = Mul(a, v)
    }"""
    compare(execute, *lowered(tmp_path, text), batch=2)


@pytest.mark.parametrize(
    "body",
    [
        "y = ReduceMean<axes=[-1], keepdims=0>(x)",
        "y = ReduceMax<axes=[1,3], keepdims=1>(x)",
        "y = ReduceL2<axes=[2,3], keepdims=0>(x)",
        "y = ReduceMin<keepdims=0>(x)",
        "t = Mul(x, x)  s = ReduceMean<axes=[2]>(t)  e = Constant<value=float {1.0}>() a = Add(s, e)  y = Sqrt(a)",
        "y = Softmax<axis=1>(x)",
        "y = LogSoftmax<axis=-1>(x)",
        "y = Transpose<perm=[0,3,1,2]>(x)",
        "y = Clip(x)",
    ],
)
def test_reductions_and_rows(tmp_path: Path, execute: Execute, body: str) -> None:
    text = f"agraph (float[3,4,5,6] x) => (float y) {{ {body.replace('  ', chr(10))} }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}')
    model.graph.output[0].type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(model)
    path = tmp_path / "model.onnx"
    onnx.save(inferred, path)
    compare(execute, lower_model(path, {}, Precision.FP32), inferred)


def test_embedding_lookup_and_class_token(tmp_path: Path, execute: Execute) -> None:
    text = """agraph (int64[N,6] ids, float[9,8] w0, float[6,8] w1) => (float[N,8] y) {
      zero = Constant<value=int64 {0}>()
      e = Gather(w0, ids)
      p = Add(e, w1)
      y = Gather<axis=1>(p, zero)
    }"""
    model, source = lowered(tmp_path, text)
    assert any(isinstance(o.problem, Gather) for o in model.program.operators)
    compare(execute, model, source, batch=3)


def test_reports_all_unsupported_nodes_at_once(tmp_path: Path) -> None:
    text = """agraph (float[2,6] x) => (float[2,6] y) {
      a = CumSum(x, axis)
      b = Relu(a)
      c = Det(m)
      y = Bernoulli(b)
    }""".replace("axis)", "axis)").replace("c = Det(m)\n", "")
    text = text.replace("float[2,6] x)", "float[2,6] x, int32 axis)")
    with pytest.raises(UnsupportedError) as refused:
        lowered(tmp_path, text)
    assert "CumSum" in refused.value.what
    assert "Bernoulli" in refused.value.what


def test_equal_layers_share_one_problem(tmp_path: Path) -> None:
    layers: Sequence[str] = [f"t{i + 1} = Conv<pads=[1,1,1,1]>(t{i}, w{i})" for i in range(4)]
    weights = ", ".join(f"float[8,8,3,3] w{i}" for i in range(4))
    text = f"agraph (float[1,8,6,6] t0, {weights}) => (float[1,8,6,6] t4) {{ {' '.join(layers)} }}"
    model, _ = lowered(tmp_path, text.replace(") t", ")\n t"))
    problems = [o.problem for o in model.program.operators]
    assert len(set(problems[1:3])) == 1
    assert all(isinstance(p, Convolution | Elementwise | Matmul | Normalisation) for p in problems)


def test_what_an_epilogue_reads_is_known_as_a_constant_or_not(tmp_path: Path) -> None:
    """A bias is one; a residual is not, nor is a gate of each channel that a kernel computes."""
    text = """agraph (float[1,8,6,6] x, float[8,8,3,3] w1, float[8] w2, float[8,8,1,1] w3)
    => (float[1,8,6,6] y) {
        gate = GlobalAveragePool(x)
        product = Conv<pads=[1,1,1,1]>(x, w1, w2)
        gated = Mul(product, gate)
        y = Add(gated, x)
    }"""
    model, _ = lowered(tmp_path, text)
    (conv,) = (o.problem for o in model.program.operators if isinstance(o.problem, Convolution))
    known = [each.constant for each in conv.epilogue.operands]
    assert len(known) > 1
    assert known.count(True) == 1
