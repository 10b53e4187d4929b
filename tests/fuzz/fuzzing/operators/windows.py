"""Convolutions, poolings and normalisations of feature maps."""

from typing import Any

import numpy as np

from fuzzing.builder import Builder, Rejected, Value
from fuzzing.operators.registry import CHANNELS, maps, maybe, move, one_of

AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


def window(builder: Builder, rank: int, *, largest: int = 3) -> dict[str, Any]:
    """Kernel, strides, dilations and padding; any may be left out."""
    draw = builder.random
    size = [draw.choice([1, 1, 2, 3, 3][: largest + 2]) for _ in range(rank)]
    attributes: dict[str, Any] = {"kernel_shape": size}
    if draw.random() < 0.5:
        attributes["strides"] = [draw.choice([1, 2, 2, 3]) for _ in range(rank)]
    if draw.random() < 0.2:
        attributes["dilations"] = [draw.choice([1, 2]) for _ in range(rank)]
    kind = draw.random()
    if kind < 0.25:
        attributes["auto_pad"] = draw.choice(AUTO_PADS)
    elif kind < 0.6:
        attributes["pads"] = [s // 2 for s in size] * 2
    elif kind < 0.75:
        attributes["pads"] = [draw.choice([0, 1, 2]) for _ in range(2 * rank)]
    return attributes


def weights(builder: Builder, *shape: int, dtype: np.dtype) -> Value:
    """Weights of a product: of a size that keeps the numbers about 1; computed, at times."""
    terms = max(1, int(np.prod(shape[1:])))
    made = builder.weight(*shape, dtype=dtype, scale=terms**-0.5)
    if builder.random.random() < 0.06:
        return builder.add("Mul", [made, builder.constant(np.asarray(0.5, dtype))], keep=False)
    return made


def conv(builder: Builder, x: Value, channels: int | None = None, **attributes: Any) -> Value:
    """A convolution of ``x`` with constant weights."""
    c = x.arrays[0].shape[1]
    group = attributes.get("group") or 1
    k = channels or one_of(builder, CHANNELS)
    if k % group:
        k = group * one_of(builder, (1, 2))
    size = attributes["kernel_shape"]
    w = weights(builder, k, c // group, *size, dtype=x.dtype)
    bias = builder.weight(k, dtype=x.dtype) if builder.random.random() < 0.5 else None
    if builder.random.random() < 0.3:
        attributes = {key: v for key, v in attributes.items() if key != "kernel_shape"}
    return builder.add("Conv", [x, w, bias], **attributes)


@move("Conv", weight=7)
def convolution(builder: Builder) -> None:
    """Dense, grouped or depthwise."""
    x = maps(builder)
    if builder.random.random() < 0.03:
        x = maps(builder, 5)
    c = x.arrays[0].shape[1]
    kind = builder.random.random()
    group = (
        None
        if kind < 0.6
        else c
        if kind < 0.85
        else one_of(builder, [g for g in (1, 2, 3, 4) if c % g == 0])
    )
    made = conv(builder, x, group=group, **window(builder, x.rank - 2))
    if builder.random.random() < 0.5:
        builder.add(one_of(builder, ("Relu", "Sigmoid", "HardSwish", "Tanh")), [made])


@move("ConvTranspose", weight=2)
def transposed_convolution(builder: Builder) -> None:
    """With output padding, a given output shape, or automatic padding."""
    x = maps(builder)
    rank, draw = x.rank - 2, builder.random
    c = x.arrays[0].shape[1]
    group = one_of(builder, [g for g in (1, 1, 1, 2, c) if c % g == 0])
    attributes = window(builder, rank)
    strides = attributes.get("strides", [1] * rank)
    if draw.random() < 0.25:
        attributes["output_padding"] = [draw.randrange(max(1, s)) for s in strides]
    if draw.random() < 0.15:
        space = x.arrays[0].shape[2:]
        attributes["output_shape"] = [n * s for n, s in zip(space, strides, strict=True)]
        attributes.pop("pads", None)
    w = weights(builder, c, draw.choice((1, 2, 4)), *attributes["kernel_shape"], dtype=x.dtype)
    k = w.arrays[0].shape[1] * group
    bias = builder.weight(k, dtype=x.dtype) if draw.random() < 0.4 else None
    builder.add("ConvTranspose", [x, w, bias], group=group, **attributes)


@move("MaxPool", "AveragePool", weight=4)
def pooling(builder: Builder) -> None:
    """With every attribute that the opset has."""
    x = maps(builder)
    op = one_of(builder, ("MaxPool", "AveragePool"))
    attributes = window(builder, x.rank - 2)
    if op == "AveragePool":
        attributes["count_include_pad"] = maybe(builder, one_of(builder, (0, 1)))
        if builder.opset < 19:
            attributes.pop("dilations", None)
    attributes["ceil_mode"] = maybe(builder, one_of(builder, (0, 1, 1)))
    if "auto_pad" in attributes and attributes["auto_pad"] != "NOTSET" and attributes["ceil_mode"]:
        raise Rejected("what ceil_mode means there, runtimes do not agree on")
    builder.add(op, [x], **attributes)


@move("MaxUnpool", weight=0.5)
def pooled_and_back(builder: Builder) -> None:
    """What a pool finds, put back where it was; the places alone, too."""
    x = maps(builder)
    size = [one_of(builder, (1, 2, 2)) if n > 1 else 1 for n in x.arrays[0].shape[2:]]
    windows = {"kernel_shape": size, "strides": size}
    by_columns = builder.random.random() < 0.2
    values, places = builder.add_many(
        "MaxPool", [x], outputs=2, storage_order=int(by_columns) if by_columns else None, **windows
    )
    if not by_columns:
        builder.add("MaxUnpool", [values, places], **windows)


@move("GlobalAveragePool", "GlobalMaxPool", weight=1.5)
def global_pooling(builder: Builder) -> None:
    """Over all places."""
    builder.add(one_of(builder, ("GlobalAveragePool", "GlobalMaxPool")), [maps(builder)])


def statistics(builder: Builder, x: Value) -> list[Value]:
    """Scale, bias, mean and variance of the channels of ``x``."""
    c = x.arrays[0].shape[1]
    variance = builder.rng().uniform(0.5, 2.0, c)
    three = [builder.weight(c, dtype=x.dtype) for _ in range(3)]
    return [*three, builder.constant(variance.astype(np.float32).astype(x.dtype))]


def batch_norm(builder: Builder, x: Value) -> Value:
    """A normalisation with constant statistics."""
    epsilon = maybe(builder, one_of(builder, (1e-5, 1e-3, 0.1)))
    return builder.add("BatchNormalization", [x, *statistics(builder, x)], epsilon=epsilon)


@move("BatchNormalization", weight=2)
def normalisation_by_batch(builder: Builder) -> None:
    """Also of matrices."""
    x = maps(builder, 2, 3, 4, 4)
    batch_norm(builder, x)


@move("InstanceNormalization", weight=1)
def normalisation_by_instance(builder: Builder) -> None:
    """Over the places of each channel."""
    x = maps(builder)
    scale, bias, *_ = statistics(builder, x)
    epsilon = maybe(builder, one_of(builder, (1e-5, 1e-3, 0.1)))
    builder.add("InstanceNormalization", [x, scale, bias], epsilon=epsilon)


@move("DepthToSpace", "SpaceToDepth", weight=1)
def blocks(builder: Builder) -> None:
    """Channels to places and back."""
    x = maps(builder, 4)
    size = one_of(builder, (1, 2, 2, 3))
    if builder.random.random() < 0.5:
        mode = maybe(builder, one_of(builder, ("DCR", "CRD")), 0.8)
        builder.add("DepthToSpace", [x], blocksize=size, mode=mode)
    else:
        mode = maybe(builder, one_of(builder, ("DCR", "CRD")), 0.3) if builder.opset >= 28 else None
        builder.add("SpaceToDepth", [x], blocksize=size, mode=mode)


@move("RoiAlign", weight=0.7)
def regions(builder: Builder) -> None:
    """Of a fixed number of images; constant, as many as there are or a few."""
    x = maps(builder, 4)
    if x.is_free or x.dtype != np.float32 or builder.opset >= 22:  # ONNX Runtime has none there
        raise Rejected("no regions of these")
    images, draw = int(x.arrays[0].shape[0]), builder.random
    count = draw.choice((1, 2, 5))
    corners = builder.rng().uniform(-2, 6, (count, 4)).astype(np.float32)
    corners[:, 2:] = corners[:, :2] + builder.rng().uniform(
        0.1, 6, (count, 2)
    )  # inside out is refused
    attributes: dict[str, Any] = {
        "output_height": maybe(builder, draw.choice((1, 2, 3))),
        "output_width": maybe(builder, draw.choice((1, 4))),
        "sampling_ratio": maybe(builder, draw.choice((0, 1, 2))),
        "spatial_scale": maybe(builder, draw.choice((0.5, 0.3, 2.0)), 0.3),
        "mode": maybe(builder, draw.choice(("avg", "max"))),
    }
    if builder.opset >= 16:
        coordinates = draw.choice(("half_pixel", "output_half_pixel"))
        attributes["coordinate_transformation_mode"] = maybe(builder, coordinates)
    places = builder.ints(builder.rng().integers(0, images, count))
    builder.add("RoiAlign", [x, builder.constant(corners), places], **attributes)


@move("Resize", weight=2.5)
def resize(builder: Builder) -> None:
    """Every mode, by scales and by sizes."""
    x = maps(builder, 3, 4, 4, 4, 4)
    draw = builder.random
    mode = draw.choice(["nearest", "linear", "linear", "cubic"])
    coordinates = [
        "half_pixel", "half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners",
    ]  # fmt: skip
    attributes: dict[str, Any] = {
        "mode": maybe(builder, mode, 0.9),
        "coordinate_transformation_mode": maybe(builder, draw.choice(coordinates), 0.8),
        "nearest_mode": maybe(
            builder,
            draw.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]),
            0.5 if mode == "nearest" else 0.1,
        ),
        "cubic_coeff_a": maybe(builder, -0.5, 0.3) if mode == "cubic" else None,
        "exclude_outside": maybe(builder, 1, 0.1) if mode == "cubic" else None,
        "antialias": maybe(builder, 1, 0.05) if builder.opset >= 18 else None,
    }
    space = x.arrays[0].shape[2:]
    roi = None
    if builder.opset < 13:
        roi = builder.constant(np.zeros(0, np.float32))
    if draw.random() < 0.6 or x.is_free:
        factors = [1.0, 1.0, *(draw.choice([1.0, 2.0, 2.0, 0.5, 1.5, 3.0, 2.5]) for _ in space)]
        builder.add(
            "Resize", [x, roi, builder.constant(np.array(factors, np.float32))], **attributes
        )
        return
    sizes = [
        *x.arrays[0].shape[:2],
        *(draw.choice([n, 2 * n, n + 1, n // 2 + 1, 11]) for n in space),
    ]
    empty = builder.constant(np.zeros(0, np.float32)) if builder.opset < 13 else None
    builder.add("Resize", [x, roi, empty, builder.ints(sizes)], **attributes)


@move("LRN", "LpPool", "GlobalLpPool", weight=0.3)
def defined_by_pools(builder: Builder) -> None:
    """Windows over squares."""
    x = maps(builder, 4)
    match one_of(builder, ("LRN", "LpPool", "GlobalLpPool")):
        case "LRN":
            builder.add("LRN", [x], size=3)
        case "LpPool":
            builder.add("LpPool", [x], kernel_shape=[2, 2])
        case _:
            builder.add("GlobalLpPool", [x])
