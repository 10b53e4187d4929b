"""Rows of operators that move, select or only name numbers; wpk does not carry all of them."""

from wpk.operators.formulas import first
from wpk.operators.row import ErrorRule, Integers, Magnitude, OperatorKind, Roundoff, Row

_VIEW, _MOVEMENT, _OTHER = OperatorKind.VIEW, OperatorKind.MOVEMENT, OperatorKind.OTHER
_NONE, _FIRST = Roundoff.NONE, Magnitude.FIRST

_NOT_CARRIED = (*("CastLike", "Compress", "ConstantOfShape", "If", "NonZero", "Scatter"),)

# name, kind, formula, error, roundoff, magnitude, integers
ROWS = (
    Row("Flatten", _VIEW, None, ErrorRule.DATA, _NONE, _FIRST),
    Row("Reshape", _VIEW, None, ErrorRule.DATA, _NONE, _FIRST),
    Row("Squeeze", _VIEW, None, ErrorRule.DATA, _NONE, _FIRST),
    Row("Transpose", _VIEW, None, ErrorRule.DATA, _NONE, _FIRST),
    Row("Unsqueeze", _VIEW, None, ErrorRule.DATA, _NONE, _FIRST),
    Row("Concat", _MOVEMENT, None, ErrorRule.ALL_DATA, _NONE, Magnitude.LARGEST),
    Row("DepthToSpace", _MOVEMENT, None, ErrorRule.DATA, _NONE),
    Row("Dropout", _MOVEMENT, first, ErrorRule.DROPOUT, _NONE, _FIRST, Integers.STAY),
    Row("Expand", _MOVEMENT, None, ErrorRule.DATA, _NONE, _FIRST),
    Row("Gather", _MOVEMENT, None, ErrorRule.GATHERED, _NONE, _FIRST),
    Row("GatherElements", _MOVEMENT, None, ErrorRule.GATHERED, _NONE, _FIRST),
    Row("GatherND", _MOVEMENT, None, ErrorRule.GATHERED, _NONE, _FIRST),
    Row("Identity", _MOVEMENT, first, ErrorRule.DATA, _NONE, _FIRST, Integers.STAY),
    Row("Pad", _MOVEMENT, None, ErrorRule.PADDED, _NONE),
    Row("MaxUnpool", _MOVEMENT, None, ErrorRule.WRITTEN, _NONE, _FIRST),
    Row("ReverseSequence", _MOVEMENT, None, ErrorRule.DATA, _NONE, _FIRST),
    Row("NonMaxSuppression", _OTHER, None, ErrorRule.SELECTED, Roundoff.TERMS, parameters=2),
    Row("TensorScatter", _MOVEMENT, None, ErrorRule.WRITTEN, _NONE),
    Row("OneHot", _MOVEMENT, None, ErrorRule.WRITTEN, _NONE),
    Row("ScatterElements", _MOVEMENT, None, ErrorRule.WRITTEN, Roundoff.TERMS),
    Row("ScatterND", _MOVEMENT, None, ErrorRule.WRITTEN, Roundoff.TERMS),
    Row("Slice", _MOVEMENT, None, ErrorRule.DATA, _NONE, _FIRST),
    Row("SpaceToDepth", _MOVEMENT, None, ErrorRule.DATA, _NONE),
    Row("Split", _MOVEMENT, None, ErrorRule.DATA, _NONE, _FIRST),
    Row("Tile", _MOVEMENT, None, ErrorRule.DATA, _NONE),
    Row("Trilu", _MOVEMENT, None, ErrorRule.DATA, _NONE),
    Row("Shape", OperatorKind.SHAPE, None, ErrorRule.EXACT, _NONE),
    Row("Size", OperatorKind.SHAPE, None, ErrorRule.EXACT, _NONE),
    Row("EyeLike", OperatorKind.SHAPE, None, ErrorRule.EXACT, _NONE),
    Row("Constant", _OTHER, None, ErrorRule.EXACT, _NONE),
    Row("Range", _OTHER, roundoff=_NONE, parameters=0),
    *(Row(name, _OTHER, roundoff=_NONE) for name in _NOT_CARRIED),
    Row("Celu", _OTHER, roundoff=Roundoff.ONE),
    Row("ThresholdedRelu", _OTHER, roundoff=Roundoff.ONE),
)
