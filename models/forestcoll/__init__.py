"""ForestColl: optimal forests of spanning trees (Zhao et al.)."""
