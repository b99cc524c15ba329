"""cwb: an optimization-modelling workbench for collective communication."""
