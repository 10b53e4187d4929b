"""Rewrites of ONNX graphs; other rooms import what they need of them from here."""

from wpk.graph_passes.catalogue import pass_groups
from wpk.graph_passes.core.exact import exact_values, moved_constant
from wpk.graph_passes.core.free_parts import free_part
from wpk.graph_passes.core.functions import RUNTIME_DOMAIN, called, function_ir_version, is_call
from wpk.graph_passes.core.known_types import KnownTypes
from wpk.graph_passes.core.manager import PassRecord, check_skips, run_passes
from wpk.graph_passes.core.query import (
    ONNX_DOMAINS,
    RANDOM_OPS,
    Dims,
    dims,
    given,
    integers,
    is_op,
    made_by,
    producer,
)
from wpk.graph_passes.core.runtime import open_session, run_session
from wpk.graph_passes.core.shapes import infer_shapes, proven_shapes
from wpk.graph_passes.core.sites import ALL, Site, every_site, is_changed, named_site, pass_of
from wpk.graph_passes.core.sizes import Size, sizes_in
from wpk.graph_passes.core.tidy import read_tensors, sort_nodes
from wpk.graph_passes.recurrent.node import OPERATORS as RECURRENT
from wpk.graph_passes.recurrent.node import RecurrentNode
