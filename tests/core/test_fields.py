"""Options of a formulation that are some of its method's."""

from __future__ import annotations

import pytest
from cwb.core.errors import InputError
from cwb.core.fields import Strict, run_validation, select_options
from pydantic import Field, model_validator


class Limits(Strict):
    """Options of a method."""

    trees: int | None = Field(None, description="Most trees.")
    height: int = Field(4, description="Most links to a leaf.")
    starts: int = Field(20, description="Random starts.")

    @model_validator(mode="after")
    def _agree(self) -> Limits:
        if self.trees == 0 and self.starts:
            raise ValueError("no trees of random starts")
        return self


CHOSEN = select_options(Limits, "height", trees=(int, Field(3, description="K.")))


def test_named_options_keep_their_order_and_changed_ones_their_place():
    """The fields are those that are named, in the order of the method's, with the changes."""
    assert list(CHOSEN.model_fields) == ["trees", "height"]
    assert CHOSEN.model_fields["trees"].description == "K."
    assert CHOSEN() == CHOSEN(trees=3, height=4)


def test_other_options_have_their_defaults_and_cannot_be_set():
    """An option that is left out can be read, and is unknown to users."""
    assert CHOSEN().starts == 20
    with pytest.raises(InputError, match="unknown field"):
        run_validation(lambda: CHOSEN.model_validate({"starts": 3}))


def test_rules_of_the_method_hold_for_the_selection():
    """A rule of the whole class is checked with the defaults of what is left out."""
    with pytest.raises(InputError, match="no trees of random starts"):
        run_validation(lambda: CHOSEN.model_validate({"trees": 0}))
