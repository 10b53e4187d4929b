"""Forms of a model compete: what passes join by a choice, and what is faster apart."""

from wpk.search.forms.beginning import Beginning, beginning
from wpk.search.forms.estimates import Estimates
from wpk.search.forms.form import (
    Difference,
    Form,
    Forms,
    RefusedFormError,
    difference,
    form_of,
    otherwise,
)
from wpk.search.forms.judges import ByMeasuring, ByModels, Proposal
from wpk.search.forms.order import FUSION, in_order, kinds_in_order
from wpk.search.forms.partition import Partitioning, best_partition, proposed
from wpk.search.forms.times import is_hopeless, predicted
