"""Execution plans of MSCCL++ (JSON): writer from schedules, and checker of plans from any source.

The rules (docs/exchange/mscclpp.md) were read from the sources of the executor, microsoft/mscclpp 1f5f065
(``src/core/executor/execution_plan.cc``, ``executor.cc``, ``src/core/include/execution_common.hpp`` and
``execution_kernel.hpp``).
"""
