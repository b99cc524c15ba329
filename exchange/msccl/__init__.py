"""MSCCL algorithms (XML): written from schedules, checked whoever made them, and read as schedules.

Three runtimes read the format, each with rules of its own (:mod:`.dialects`; docs/exchange/msccl.md).
"""
