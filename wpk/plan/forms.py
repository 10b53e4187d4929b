"""What a plan says of the forms of its model that competed: what passes do by a choice, and what was taken back."""

from dataclasses import dataclass, field
from enum import StrEnum

from wpk.codec import MAY_LACK


class FormOutcome(StrEnum):
    """What became of a form."""

    TAKEN = "taken"
    BEGUN = "faster by estimates, so tuning began with it"
    SLOWER = "slower"
    EQUAL = "equal to another form"
    HOPELESS = "slower beyond what the models may err by"
    NOT_MEASURED = "the time for forms was spent"
    REFUSED = "refused"


@dataclass(frozen=True)
class TriedForm:
    """A form that differs in one class of equal sites, or in two, from the one that it was tried on. Seconds.

    Attributes:
        site: Key of the sites.
        usual: What the pass does there if nothing is taken back, as a clause.
        places: How many sites there are.
        outcome: What became of it.
        reason: Why it was refused; else empty.
        predicted_usual: Estimates of the operators that only the form before it has, together; None
            where there are none.
        predicted: Estimates of those that only this form has.
        measured_usual: Measured times of the former; None where not all of both sides were measured.
        measured: Of the latter.
        also: Key of other sites that are taken back together with these; empty where there are none.
        again: Whether the site was taken back in the form that it was tried on, and is not here.
    """

    site: str
    usual: str
    places: int
    outcome: FormOutcome
    reason: str = ""
    predicted_usual: float | None = None
    predicted: float | None = None
    measured_usual: float | None = None
    measured: float | None = None
    also: str = ""
    again: bool = field(default=False, metadata=MAY_LACK)

    @property
    def keys(self) -> tuple[str, ...]:
        """Of all sites that are taken back."""
        return (self.site, self.also) if self.also else (self.site,)


@dataclass(frozen=True)
class Begun:
    """The form that tuning began with: the one with the least estimates of those that were looked at before. Seconds.

    Attributes:
        changed: Keys of the sites that are taken back in it; none where it is the passes' own.
        looked_at: Forms that were looked at before, the passes' own not counted.
        passes_estimate: Estimates of all operators of the passes' own form.
        estimate: Of all operators of this.
    """

    changed: tuple[str, ...]
    looked_at: int
    passes_estimate: float
    estimate: float


@dataclass(frozen=True)
class FormSearch:
    """How the form of a plan was found.

    Attributes:
        tried: All forms that were looked at, in order; one a class of sites and form before it.
        partitions: Different partitions of the model into operators whose times were compared, by models or
            by measuring, the usual one among them.
        found: Keys of the sites that are taken back in the best partition found.
        chosen: Keys of those that are taken back in the plan: whole engines decide.
        measured: Whether times were measured; else models decided alone.
        begun: The form that tuning began with; None where it was the passes' own without a look at others.
    """

    tried: tuple[TriedForm, ...]
    partitions: int
    found: tuple[str, ...]
    chosen: tuple[str, ...]
    measured: bool
    begun: Begun | None = field(default=None, metadata=MAY_LACK)
