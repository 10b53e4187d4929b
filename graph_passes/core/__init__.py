"""What every pass uses: the contract, rules, and edits that keep a graph well-formed.

Questions about a graph are in `query`, operators as functions in `functions`, which operators may stand
where in one in `kinds`.
"""

from wpk.graph_passes.core.base import GraphPass, PassResult, Refusal, refusal
from wpk.graph_passes.core.editor import GraphEditor
from wpk.graph_passes.core.rule import NewConstant, Replacement, ReplacementRule, Rule
