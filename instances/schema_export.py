"""JSON Schemas of the file formats, made from the pydantic classes: editors complete and check instances with them.

``instances/schema.json`` and ``instances/workloads/schema.json`` hold these texts; a test keeps them equal. What one
schema cannot say (sizes that multiply, groups that fit, constraints that can be read) is checked when an instance is
built.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from .schema import InstanceFile, WorkloadFile

#: Format to the class that reads it.
FORMATS: Mapping[str, type[BaseModel]] = {"instance": InstanceFile, "workload": WorkloadFile}


def schema_text(name: str) -> str:
    """Write the JSON Schema of a format, a key of :data:`FORMATS`, with sorted keys and a final newline."""
    schema = FORMATS[name].model_json_schema(by_alias=True, schema_generator=_Generator)
    dialect = {"$schema": GenerateJsonSchema.schema_dialect}
    return json.dumps(dialect | schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


class _Generator(GenerateJsonSchema):
    """Leaves out what says nothing: titles that repeat the field's name, and what is in a default by default."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Set no titles."""
        del schema
        return False

    def encode_default(self, dft: Any) -> Any:
        """Write a default object as the file would: without the fields that have defaults themselves."""
        if isinstance(dft, BaseModel):
            return dft.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return super().encode_default(dft)
