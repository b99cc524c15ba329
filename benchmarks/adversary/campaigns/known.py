"""Nothing yet."""

CAMPAIGNS: tuple = ()
DEFECTS: dict[int, str] = {8: "sum in switch", 9: "fluid copy", 10: "wrap", 19: "order"}
