"""Problems that cuDNN is asked for besides convolutions, products and normalisations: odd sizes, batches."""

from support.problems.attentions import attention
from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Expression, Operand, Scalar, apply
from wpk.extent import Extent
from wpk.problems import Attention, Elementwise, Epilogue, Normalisation, Reduction, Tensor
from wpk.problems.normalisation import NormKind
from wpk.problems.reduction import ReduceKind

KEYS = 57
SCALED = apply("Mul", Acc(), Scalar(0.125))
CAPPED = apply("Mul", apply("Tanh", SCALED), Scalar(5.0))


def attentions(precision: Precision) -> dict[str, Attention]:
    """Two sentences, three heads of 64, 33 queries, 57 keys; masks of every broadcasting."""
    masks = {
        "a key": (KEYS, 0, 0, 1),
        "a pair": (0, 0, KEYS, 1),
        "a head": (3 * 33 * KEYS, 33 * KEYS, KEYS, 1),
    }
    given = {"precision": precision, "scale": 0.125}
    plain = {
        "scaled": attention(33, KEYS, 64, **given),  # type: ignore[arg-type]
        "wide values": attention(33, KEYS, 64, width=96, **given),  # type: ignore[arg-type]
        "shared heads": attention(33, KEYS, 64, batch=(2, 6), sharing=3, **given),  # type: ignore[arg-type]
        "one query": attention(1, KEYS, 64, **given),  # type: ignore[arg-type]
    }
    biased = {
        f"biased by {name}": attention(33, KEYS, 64, mask=strides, **given)  # type: ignore[arg-type]
        for name, strides in masks.items()
    }
    return plain | biased | {"capped": with_scores(plain["scaled"], CAPPED)}


def with_scores(problem: Attention, expression: Expression, *operands: Tensor) -> Attention:
    """The attention with other scores."""
    return Attention(
        **{name: getattr(problem, name) for name in problem.__dataclass_fields__}
        | {"scores": Epilogue(expression, operands)}
    )


def softmaxes(dtype: DType) -> dict[str, Normalisation]:
    """Rows of 57: of scores in four axes, and of a table with an epilogue."""
    rows = (Extent(2), (2, 3, 5), KEYS, 0.0, Operand(0))
    scores = Tensor(dtype, (15 * KEYS, 5 * KEYS, KEYS, 1))
    table = Tensor(dtype, (KEYS, 1))
    after = Epilogue(apply("Mul", Acc(), Operand(0)), (Tensor(dtype, (0, 1)),))
    return {
        "softmax": Normalisation(NormKind.SOFTMAX, *rows, (scores,), scores, Epilogue()),
        "softmax, scaled": Normalisation(
            NormKind.SOFTMAX, Extent(7), (7,), KEYS, 0.0, Operand(0), (table,), table, after
        ),
        "log softmax": Normalisation(NormKind.LOG_SOFTMAX, *rows, (scores,), scores, Epilogue()),
    }


def reductions(dtype: DType) -> dict[str, Reduction]:
    """Pixels of 24 channels, channels last; rows of 57."""
    image, pooled = Tensor(dtype, (7 * 5 * 24, 1, 5 * 24, 24)), Tensor(dtype, (24, 1))
    biased = Epilogue(apply("Relu", apply("Add", Acc(), Operand(0))), (Tensor(dtype, (0, 1)),))
    pixels = (Extent(3), (3, 24), (7, 5), Operand(0), (image,), pooled)
    rows = (Extent(9), (9,), (KEYS,))
    table, column = Tensor(dtype, (KEYS, 1)), Tensor(dtype, (1,))
    squares = (apply("Mul", Operand(0), Operand(0)), (table,), column, Epilogue())
    bare = {
        kind.value: Reduction(kind, *rows, Operand(0), (table,), column, Epilogue())
        for kind in ReduceKind
    }
    return bare | {
        "mean of pixels": Reduction(ReduceKind.MEAN, *pixels, Epilogue()),
        "mean of pixels, biased": Reduction(ReduceKind.MEAN, *pixels, biased),
        "sum of squares": Reduction(ReduceKind.SUM, *rows, *squares),
    }


def elementwise(dtype: DType) -> dict[str, Elementwise]:
    """A sum that is broadcast, a product of three, a cast, a transpose."""
    shape = (3, 5, 7)
    dense, vector = Tensor(dtype, (35, 7, 1)), Tensor(dtype, (0, 0, 1))
    across = Tensor(dtype, (35, 1, 5))
    other = DType.FP32 if dtype is not DType.FP32 else DType.FP16
    add = apply("Relu", apply("Add", Operand(0), Operand(1)))
    product = apply("Mul", apply("Mul", Operand(0), Operand(1)), apply("Sigmoid", Operand(2)))
    head = (Extent(3), shape)
    return {
        "add": Elementwise(*head, add, (dense, vector), dense),
        "product": Elementwise(*head, product, (dense, dense, dense), dense),
        "cast": Elementwise(*head, Operand(0), (dense,), Tensor(other, dense.strides)),
        "transpose": Elementwise(*head, Operand(0), (dense,), across),
    }
