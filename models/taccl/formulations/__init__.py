"""The two integer programs of TACCL: routes of chunks, and joined sends."""
