"""Blocks of networks that attend to windows of an image: Swin's, rolled or not, and MaxViT's, windows and grids."""

import numpy as np
import onnx

_HEADER = '<ir_version: 10, opset_import: ["" : 20]>'
_WEIGHTS = "float[8] wg, float[8] wb, float[8,24] wqkv, float[24] wqkvb, float[1,2,6,6] wt, float[8,8] wo, float[8] wob"
WEIGHTS = "wg wb wqkv wqkvb wt wo wob"


def swin(
    *,
    shift: int = 0,
    images: int = 1,
    mask: bool = True,
    by_head: bool = False,
    by_part: bool = False,
) -> str:
    """Text of a block over images of 4 x 6 places of 8 channels, in windows of 2 x 3.

    ``by_head``: each head has its query, key and value side by side, as TinyViT has them.
    ``by_part``: queries, keys and values are parts of a dimension of their own, as DaViT and MobileViT have them.
    """
    count = 4 * images
    sizes = {"parted": (images, 2, 2, 2, 3, 8), "joined": (images, 2, 2, 2, 3, 8)}
    roll, back, masked = "i = Identity(n)", "r = Identity(j)", ""
    if shift:
        roll = _rolled("n", "i", shift, "a")
        back = _rolled("j", "r", -shift, "b")
        masked = "wm" if mask else ""
    return f"""{_HEADER} swin (float[{images},4,6,8] x, {_WEIGHTS}{_mask(masked)}) => (float[{images},4,6,8] y) {{
      n = LayerNormalization(x, wg, wb)
      {roll}
      s0 = Constant<value_ints = {_ints(sizes["parted"])}>()  p0 = Reshape(i, s0)
      p1 = Transpose<perm = [0, 1, 3, 2, 4, 5]>(p0)
      s1 = Constant<value_ints = [{count}, 6, 8]>()  p2 = Reshape(p1, s1)
      {_attention("p2", "o", (count,), masked, by_head=by_head, by_part=by_part)}
      p3 = Reshape(o, s0)  p4 = Transpose<perm = [0, 1, 3, 2, 4, 5]>(p3)
      s2 = Constant<value_ints = [{images}, 4, 6, 8]>()  j = Reshape(p4, s2)
      {back}
      y = Add(x, r) }}"""


def maxvit() -> str:
    """Text of a block over an image of 4 x 6 places of 8 channels: attention in windows, then in grids of 2 x 3."""
    turn = "Transpose<perm = [0, 2, 4, 3, 5, 1]>"
    return f"""{_HEADER} maxvit (float[1,8,4,6] x, {_WEIGHTS}, float[8,8,1,1] wc) => (float[1,8,4,6] y) {{
      c = Conv(x, wc)
      s0 = Constant<value_ints = [1, 8, 2, 2, 2, 3]>()  p0 = Reshape(c, s0)  p1 = {turn}(p0)
      s1 = Constant<value_ints = [1, 4, 6, 8]>()  p = Reshape(p1, s1)
      n = LayerNormalization(p, wg, wb)
      {_attention("n", "o", (1, 4), "")}
      a = Add(p, o)
      s2 = Constant<value_ints = [1, 2, 2, 2, 3, 8]>()  b0 = Reshape(a, s2)
      b1 = Transpose<perm = [0, 5, 1, 3, 2, 4]>(b0)
      s3 = Constant<value_ints = [1, 8, 2, 2, 3, 2]>()  g0 = Reshape(b1, s3)  g1 = {turn}(g0)
      s4 = Constant<value_ints = [1, 6, 4, 8]>()  g2 = Reshape(g1, s4)
      g = Transpose<perm = [0, 2, 1, 3]>(g2)
      h = LayerNormalization(g, wg, wb)
      {_attention("h", "q", (1, 4), "", "t")}
      d = Add(g, q)
      e0 = Transpose<perm = [0, 2, 1, 3]>(d)
      s5 = Constant<value_ints = [1, 2, 3, 2, 2, 8]>()  e1 = Reshape(e0, s5)
      e2 = Transpose<perm = [0, 5, 1, 3, 2, 4]>(e1)
      s6 = Constant<value_ints = [1, 8, 4, 6]>()  e = Reshape(e2, s6)
      y = Conv(e, wc) }}"""


def model(text: str, seed: int = 0) -> onnx.ModelProto:
    """A block with drawn weights."""
    proto = onnx.parser.parse_model(text)
    rng = np.random.default_rng(seed)
    for info in [each for each in proto.graph.input if each.name.startswith("w")]:
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        values = rng.standard_normal(shape).astype(np.float32) / np.float32(2)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(values, info.name))
        proto.graph.input.remove(info)
    return proto


def _attention(
    x: str,
    result: str,
    windows: tuple[int, ...],
    mask: str,
    name: str = "",
    *,
    by_head: bool = False,
    by_part: bool = False,
) -> str:
    """Two heads of four elements over windows of six tokens, between its two projections."""
    axis, n, lead = len(windows) + 1, name or "f", list(range(len(windows)))
    heads = _ints((*windows, 6, 2, 4))
    turned = [*lead, axis, axis - 1, axis + 1]
    across = [*lead, axis, axis + 1, axis - 1]
    masked = f"{n}l2 = Add({n}l1, {mask})" if mask else f"{n}l2 = Identity({n}l1)"
    parts = f"""{n}q0, {n}k0, {n}v0 = Split<axis = {axis}, num_outputs = 3>({n}u1)
      {n}hs = Constant<value_ints = {heads}>()
      {n}q1 = Reshape({n}q0, {n}hs)  {n}k1 = Reshape({n}k0, {n}hs)  {n}v1 = Reshape({n}v0, {n}hs)"""
    if by_head:
        parts = f"""{n}hs = Constant<value_ints = {_ints((*windows, 6, 2, 12))}>()  {n}p = Reshape({n}u1, {n}hs)
      {n}q1, {n}k1, {n}v1 = Split<axis = {axis + 1}, num_outputs = 3>({n}p)"""
    if by_part:
        parts = f"""{n}ps = Constant<value_ints = {_ints((*windows, 6, 3, 2, 4))}>()  {n}p = Reshape({n}u1, {n}ps)
      {n}q0, {n}k0, {n}v0 = Split<axis = {axis}, num_outputs = 3>({n}p)
      {n}hs = Constant<value_ints = {heads}>()
      {n}q1 = Reshape({n}q0, {n}hs)  {n}k1 = Reshape({n}k0, {n}hs)  {n}v1 = Reshape({n}v0, {n}hs)"""
    return f"""{n}u0 = MatMul({x}, wqkv)  {n}u1 = Add({n}u0, wqkvb)
      {parts}
      {n}q2 = Transpose<perm = {turned}>({n}q1)
      {n}k2 = Transpose<perm = {across}>({n}k1)
      {n}v2 = Transpose<perm = {turned}>({n}v1)
      {n}half = Constant<value = float {{0.5}}>()
      {n}l = MatMul({n}q2, {n}k2)  {n}l0 = Mul({n}l, {n}half)  {n}l1 = Add({n}l0, wt)  {masked}
      {n}w = Softmax({n}l2)  {n}o0 = MatMul({n}w, {n}v2)
      {n}o1 = Transpose<perm = {turned}>({n}o0)
      {n}fs = Constant<value_ints = {_ints((*windows, 6, 8))}>()  {n}o2 = Reshape({n}o1, {n}fs)
      {n}o3 = MatMul({n}o2, wo)  {result} = Add({n}o3, wob)"""


def _rolled(x: str, result: str, by: int, name: str) -> str:
    """An image rolled up and to the left along both of its axes."""
    lines, source = [], x
    for axis in (1, 2):
        n, last = f"{name}{axis}", axis == 2
        lines.append(
            f"""{n}z = Constant<value_ints = [0]>()  {n}c = Constant<value_ints = [{by}]>()
      {n}e = Constant<value_ints = [99]>()  {n}a = Constant<value_ints = [{axis}]>()
      {n}h = Slice({source}, {n}z, {n}c, {n}a)  {n}t = Slice({source}, {n}c, {n}e, {n}a)
      {result if last else n} = Concat<axis = {axis}>({n}t, {n}h)"""
        )
        source = n
    return "\n".join(lines)


def _mask(name: str) -> str:
    return f", float[4,1,6,6] {name}" if name else ""


def _ints(sizes: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, sizes))}]"
