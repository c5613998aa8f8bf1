"""How bulk bodies and common parameters are described. Lines of JSON are text to the OpenAPI document."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from litestar.openapi.spec import OpenAPIMediaType, OpenAPIType, Operation, RequestBody, Schema
from litestar.params import Parameter

NDJSON = "application/x-ndjson"
CursorParameter = Annotated[str | None, Parameter(pattern=r"^[0-9]+$", max_length=18, description="A cursor: digits")]
NameParameter = Annotated[str | None, Parameter(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]*$", max_length=128)]


@dataclass
class LinesOperation(Operation):
    """An operation that takes NDJSON; it is read as bytes, past the framework, for speed."""

    request_body: RequestBody | None = field(
        default_factory=lambda: RequestBody(
            content={NDJSON: OpenAPIMediaType(Schema(type=OpenAPIType.STRING))}, description="A JSON object on each line"
        )
    )


LINES = LinesOperation
