"""BlueConnect and Themis: orders in which chunks pass the dimensions of a fabric (:mod:`cwb.models.multirail`)."""
