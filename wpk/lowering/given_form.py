"""A form that somebody gives: each of its keys must name a place of the model."""

from collections.abc import Collection

from wpk.errors import GraphError
from wpk.graph_passes import every_site, pass_of
from wpk.lowering.lowered_model import LoweredModel


def require_sites(lowered: LoweredModel, keys: Collection[str]) -> None:
    """Refuse a form of which a key names no place at which passes or lowering had a choice.

    Args:
        lowered: The model in this form.
        keys: Of the sites that are decided otherwise than usually.

    Raises:
        GraphError: There are such keys; names them.
    """
    known = {site.key for site in lowered.sites}
    known |= {every_site(pass_of(key)) for key in known}
    unknown = sorted({*keys} - known)
    if unknown:
        raise GraphError(
            f"no place of {lowered.source.path.name} in {lowered.source.precision} is called "
            f"{', '.join(unknown)}: {len(unknown)} of the form's {len(keys)} keys",
            fix="take keys from a report of this model, of these shapes, this precision and this version of wpk",
        )
