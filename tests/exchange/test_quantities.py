"""Rates and times by their names: every spelling is one exact number, and what is not certain is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from cwb.core.errors import InputError
from cwb.core.units import UnitKind, parse
from cwb.exchange.quantities import RAW, is_quantity, quantity

GB = 10**9


@pytest.mark.parametrize(
    ("fields", "unit"),
    [
        ({"bandwidth": "25 GB/s"}, None),
        ({"Bandwidth": "25e9 B/s"}, None),
        ({"bw": "200Gb/s"}, None),
        ({"capacity": "200 Gbps"}, None),
        ({"weight": "25 GB/s"}, None),
        ({"rate": 25}, "GB/s"),
        ({"capacity": " 25.0 "}, "GB/s"),
        ({"bandwidth_GBps": 25}, None),
        ({"bandwidth_Gbps": "200"}, None),
        ({"bandwidth_GB_s": 25.0}, None),
        ({"bandwidth GB_per_s": Decimal(25)}, None),
        ({"bandwidth (GB/s)": Fraction(25)}, None),
        ({"BW[Gb/s]": np.float64(200)}, None),
        ({"capacity_Mbps": np.int32(200_000)}, None),
        ({RAW: 2e11}, None),
        ({"bandwidth": "25 GB/s", "capacity_Gbps": 200, "colour": "red", "weight": 3, "rate_limit": 4}, None),
        ({"bandwidth": None, "capacity": "", "bw": "25 GB/s"}, None),
    ],
)
def test_spellings_of_a_rate(fields, unit):
    """Names, units in values and in names, and numbers of all kinds mean 25 GB/s."""
    assert parse(quantity(fields, UnitKind.RATE, unit), UnitKind.RATE) == 25 * GB


@pytest.mark.parametrize(
    ("fields", "unit"),
    [
        ({"latency": "0.7 us"}, None),
        ({"delay": "700ns"}, None),
        ({"latency_us": 0.7}, None),
        ({"Latency (µs)": "0.7"}, None),
        ({"delay_s": Fraction(7, 10**7)}, None),
        ({"latency_ns": np.int64(700)}, None),
        ({"latency": 0.7}, "us"),
        ({"weight": "0.7 us"}, None),
    ],
)
def test_spellings_of_a_time(fields, unit):
    """A float is the decimal that it is written as: 0.7 is seven tenths."""
    assert parse(quantity(fields, UnitKind.TIME, unit), UnitKind.TIME) == Fraction(7, 10**7)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"bandwidth": 25}, "^bandwidth: 25 has no unit; expected '50 GB/s', a name such as bandwidth_GBps"),
        ({"bandwidth": "25"}, "^bandwidth: '25' has no unit"),
        ({"bandwidth_gbps": 25}, "^'gbps' may be GB/s or Gb/s or Gbps"),
        ({"weight": 3}, "^weight: 3 may be anything; expected bandwidth or capacity"),
        ({"bandwidth": "25 GB/s", "capacity": "200 GB/s"}, "bandwidth '25 GB/s' and capacity '200 GB/s' differ"),
        ({"bandwidth": "1 us"}, "'1 us' has an unknown unit 'us'; expected a bandwidth"),
        ({"bandwidth_GBps": 0}, "must be greater than zero"),
        ({"bandwidth_GBps": -1}, "must not be negative"),
        ({"bandwidth_GBps": float("nan")}, "'nan GB/s' is not a quantity"),
        ({"bandwidth_GBps": float("inf")}, "'inf GB/s' is not a quantity"),
        ({"bandwidth_GBps": "1e999999999"}, "is not a quantity"),
        ({"bandwidth_GBps": "1/0"}, "is not a quantity"),
        ({"bandwidth_GBps": True}, "True has no unit"),
        ({"bandwidth_GBps": [25]}, r"\[25\] has no unit"),
        ({"bandwidth_GBps": np.array([25, 26])}, r"array\(\[25, 26\]\) has no unit"),
        ({"bandwidth_GBps": "9" * 50}, "is not a quantity"),
        ({RAW: "fast"}, "'fast b/s' is not a quantity"),
    ],
)
def test_what_is_not_certain_is_refused(fields, message):
    """Missing and uncertain units, values that differ and wrong numbers are one line with the field."""
    with pytest.raises(InputError, match=message):
        quantity(fields, UnitKind.RATE)


def test_other_fields_say_nothing():
    """Fields of other names are none, and those whose unit is unknown too."""
    assert quantity({"bandwidth_used": 3, "latitude": 52, "delayed": 1, "delays": 2}, UnitKind.TIME) is None
    assert not is_quantity("bandwidth_used")
    assert is_quantity("latency_us")
    assert is_quantity("capacity")
