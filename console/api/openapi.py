"""The OpenAPI document, made from the operations and their models; docs/reference/openapi.json is the same."""

import json
import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from console.api import job_routes, service_routes
from console.api.models import ProblemDocument
from console.api.operations import Operation

OPERATIONS: tuple[Operation, ...] = (*job_routes.OPERATIONS, *service_routes.OPERATIONS)
_REF = "#/components/schemas/{model}"
_ALWAYS = (401, 414, 421, 429, 503)
_PARAMETERS = {
    "job_id": {"type": "string", "pattern": "^[a-z0-9-]{1,100}$"},
    "key": {"type": "string", "minLength": 1, "maxLength": 300},
}
_ABOUT = (
    "Drop spreadsheets with a manifest, follow their jobs, fetch what they made. Without a token only on the machine "
    "itself; elsewhere send `Authorization: Bearer <token>` (`ade token new`)."
)


JsonSchema = dict[str, Any]  # as pydantic makes it


def document(operations: Iterable[Operation] = OPERATIONS) -> dict[str, object]:
    operations = tuple(operations)
    schemas = _Schemas(operations)
    paths: dict[str, dict[str, object]] = {}
    for operation in operations:
        path = re.sub(r"\{(\w+):path\}", r"{\1}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _described(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "ade-drop", "version": "1", "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": schemas.all,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "ade_session"},
            },
        },
    }


class _Schemas:
    """The models' schemas under their names."""

    def __init__(self, operations: tuple[Operation, ...]) -> None:
        requests = {m for o in operations for m in (o.query, o.body, o.form) if m is not None}
        answers = {m for o in operations for m in o.answers.values() if isinstance(m, type)} | {ProblemDocument}
        wanted: list[Any] = [(m, "validation") for m in requests] + [(m, "serialization") for m in answers - requests]
        wanted.sort(key=lambda one: one[0].__name__)
        self._refs, made = models_json_schema(wanted, ref_template=_REF)
        self.all: dict[str, JsonSchema] = dict(sorted(made["$defs"].items()))

    def ref(self, model: type[BaseModel]) -> dict[str, str]:
        found = self._refs.get((model, "validation")) or self._refs[model, "serialization"]
        return dict(found)

    def of(self, model: type[BaseModel]) -> JsonSchema:
        return self.all[self.ref(model)["$ref"].rpartition("/")[2]]


def _described(operation: Operation, schemas: _Schemas) -> dict[str, object]:
    spec: dict[str, object] = {"operationId": operation.name, "summary": operation.summary}
    parameters = [*_path_parameters(operation), *_query_parameters(operation, schemas)]
    parameters += [
        {"name": name, "in": "header", "description": about, "schema": {"type": "string", "maxLength": 200}}
        for name, about in operation.headers.items()
    ]
    if parameters:
        spec["parameters"] = parameters
    contents: dict[str, object] = {}
    if operation.body is not None:
        contents["application/json"] = {"schema": schemas.ref(operation.body)}
    if operation.form is not None:
        contents["multipart/form-data"] = {"schema": schemas.ref(operation.form)}
    if operation.raw:
        contents[operation.raw] = {"schema": {"type": "string", "format": "binary"}}
    if contents:
        spec["requestBody"] = {"required": True, "content": contents}
    spec["responses"] = _responses(operation, schemas, asks=bool(operation.query or contents or operation.headers))
    # An empty choice: on the machine itself no token is needed.
    spec["security"] = [] if operation.open else [{}, {"token": []}, {"session": []}]
    if operation.right is not None:
        spec["x-right"] = str(operation.right)
    return spec


def _path_parameters(operation: Operation) -> list[dict[str, object]]:
    names = re.findall(r"\{(\w+)(?::path)?\}", operation.path)
    return [{"name": name, "in": "path", "required": True, "schema": _PARAMETERS[name]} for name in names]


def _query_parameters(operation: Operation, schemas: _Schemas) -> list[dict[str, object]]:
    if operation.query is None:
        return []
    schema = schemas.of(operation.query)
    needed = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in needed, "schema": _plain(one)}
        for name, one in schema["properties"].items()
    ]


def _plain(schema: JsonSchema) -> JsonSchema:
    """A parameter is left out, never null."""
    choices = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    if len(choices) != 1:
        return schema
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return {**rest, **choices[0]}


def _responses(operation: Operation, schemas: _Schemas, *, asks: bool) -> dict[str, object]:
    responses: dict[str, object] = {}
    for status, answer in operation.answers.items():
        contents: dict[str, object] = {}
        if isinstance(answer, str):
            contents[answer.partition(";")[0]] = {"schema": _bytes(answer)}
        elif answer is not None:
            contents["application/json"] = {"schema": schemas.ref(answer)}
        if status == HTTPStatus.OK and operation.name == "logs":
            contents["text/event-stream"] = {"schema": {"type": "string"}}
        if status == HTTPStatus.OK and operation.path == "/":
            contents["text/html"] = {"schema": {"type": "string"}}
        described: dict[str, object] = {"description": HTTPStatus(status).phrase}
        responses[str(status)] = described | {"content": contents} if contents else described
    problems = {*_ALWAYS, *operation.also, *((400,) if asks else ())}
    if operation.right is not None:
        problems.add(403)
    content = {"application/problem+json": {"schema": schemas.ref(ProblemDocument)}}
    for status in sorted(problems):
        responses[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
    return responses


def _bytes(media: str) -> dict[str, object]:
    if media.startswith("application/json"):
        return {}
    return {"type": "string"} if media.startswith("text/") else {"type": "string", "format": "binary"}


if __name__ == "__main__":
    print(json.dumps(document(), indent=1))
