"""Nothing yet."""

CAMPAIGNS: tuple = ()
DEFECTS: dict[int, str] = {}
