import cwb

b = [cwb.formulation("teccl/milp")]
