"""Examples of the routes in the OpenAPI document: for curl, Python and JavaScript, ready to be copied.

The examples are made from the OpenAPI document, with this server's address and languages. If the server
requires an API key, the user fills in the key. Otherwise an example can be run unchanged.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumok.server.routes import JSON_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Schema = Mapping[str, Any]

# The example sentence of each source language; for other languages it is "1 2 3".
SENTENCES = {
    "en": "I go home.",
    "ko": "나는 집에 간다.",
    "de": "Ich gehe nach Hause.",
    "fr": "Je rentre.",
}
OPTIONAL_VALUES = {"n_best": 3, "alternatives": 2, "alignment": True, "words": True}
"""Example values of optional fields."""
FILE_NAME = "example.txt"
MAX_SHOWN_VALUES = 6


@dataclass(frozen=True, slots=True)
class ExampleRequest:
    """A request to one route."""

    method: str
    url: str
    fields: Mapping[str, Any]
    has_file: bool
    is_stream: bool
    key: str

    def examples(self) -> dict[str, str]:
        """Return the request as code for curl, Python and JavaScript."""
        return {"curl": self._curl(), "Python": self._python(), "JavaScript": self._javascript()}

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    def _file_text(self) -> str:
        return str(self.fields["file"])

    def _fields_without_file(self) -> dict[str, Any]:
        return {name: value for name, value in self.fields.items() if name != "file"}

    def _curl(self) -> str:
        headers = [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in self._headers.items()]
        parts = ["curl", *(["-N"] if self.is_stream else []), shlex.quote(self.url), *headers]
        if self.has_file:
            parts += [
                f"-F {shlex.quote(f'{name}={value}')}" for name, value in self._fields_without_file().items()
            ]
            parts.append(f"-F {shlex.quote(f'file=@-;filename={FILE_NAME}')}")
            return f"printf %s {shlex.quote(self._file_text())} | " + " ".join(parts)
        if self.method == "POST":
            parts.append(f"-H 'Content-Type: {JSON_TYPE}'")
            parts.append("\\\n  -d " + shlex.quote(json.dumps(self.fields, ensure_ascii=False)))
        return " ".join(parts)

    def _python(self) -> str:
        arguments = [repr(self.url)]
        if self._headers:
            arguments.append(f"headers={self._headers!r}")
        if self.has_file:
            arguments += [
                f"data={self._fields_without_file()!r}",
                f"files={{'file': ({FILE_NAME!r}, {self._file_text()!r})}}",
            ]
        elif self.method == "POST":
            arguments.append(f"json={dict(self.fields)!r}")
        if self.is_stream:
            arguments.append("stream=True")
        call = f"requests.{self.method.lower()}({', '.join(arguments)})"
        if self.is_stream:
            return f"import requests\n\nfor line in {call}.iter_lines(decode_unicode=True):\n    print(line)"
        return f"import requests\n\nanswer = {call}\nprint(answer.text)"

    def _javascript(self) -> str:
        lines, options = [], []
        if self.has_file:
            lines.append("const body = new FormData();")
            lines += [
                f"body.append({json.dumps(name)}, {json.dumps(value, ensure_ascii=False)});"
                for name, value in self._fields_without_file().items()
            ]
            text = json.dumps(self._file_text(), ensure_ascii=False)
            lines.append(f'body.append("file", new Blob([{text}]), {json.dumps(FILE_NAME)});')
            options += ['method: "POST"', "body"]
        headers = dict(self._headers)
        if self.method == "POST" and not self.has_file:
            headers["Content-Type"] = JSON_TYPE
            fields = json.dumps(self.fields, ensure_ascii=False)
            options += ['method: "POST"', f"body: JSON.stringify({fields})"]
        if headers:
            options.append(f"headers: {json.dumps(headers)}")
        arguments = json.dumps(self.url) + (
            f", {{\n  {f',{chr(10)}  '.join(options)},\n}}" if options else ""
        )
        lines.append(f"const answer = await fetch({arguments});")
        if self.is_stream:
            chunk = "for await (const chunk of answer.body.pipeThrough(new TextDecoderStream()))"
            return "\n".join([*lines, f"{chunk} console.log(chunk);"])
        return "\n".join([*lines, "console.log(await answer.text());"])


def example_requests(
    document: Schema, base_url: str, languages: tuple[str, str], key: str = ""
) -> Iterator[tuple[str, str, Schema, ExampleRequest | None]]:
    """Yield method, path and OpenAPI operation of each route, and an example.

    The example is None if the path has a parameter, or if the route reads a picture.
    """
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            example = None
            properties = request_schema(operation).get("properties", {})
            # A route that reads a picture has a `file` but no `source` language.
            if "{" not in path and ("file" not in properties or "source" in properties):
                guarded = "security" in operation
                example = _example(
                    method.upper(), base_url + path, operation, languages, key if guarded else ""
                )
            yield method.upper(), path, operation, example


def _example(
    method: str, url: str, operation: Schema, languages: tuple[str, str], key: str
) -> ExampleRequest:
    source, target = languages
    schema = request_schema(operation)
    sentence = SENTENCES.get(source, "1 2 3")
    values = {"q": sentence, "file": sentence, "source": source, "target": target, **OPTIONAL_VALUES}
    fields = {name: value for name, value in values.items() if name in schema.get("properties", {})}
    answers = operation["responses"]["200"]["content"]
    return ExampleRequest(method, url, fields, "file" in fields, "text/event-stream" in answers, key)


def request_schema(operation: Schema) -> Schema:
    """Return the schema of a route's fields; {} if it has none."""
    content: dict[str, Schema] = operation.get("requestBody", {}).get("content", {})
    body = content.get(JSON_TYPE) or next(iter(content.values()), {})
    schema: Schema = body.get("schema", {})
    return schema


def describe_values(schema: Schema) -> str:
    """Describe the values that a field may have, in a few words.

    A string with a pattern is left out: usually it is another choice, as a form sends it.
    """
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    if choices:
        return " | ".join(dict.fromkeys(filter(None, map(describe_values, choices))))
    if "enum" in schema:
        values = [json.dumps(value, ensure_ascii=False) for value in schema["enum"]]
        more = " …" if len(values) > MAX_SHOWN_VALUES else ""
        return ", ".join(values[:MAX_SHOWN_VALUES]) + more
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    kind = str(schema.get("type", "")) if "pattern" not in schema else ""
    if "minimum" in schema and "maximum" in schema:
        return f"{schema['minimum']}–{schema['maximum']}"
    if "maxLength" in schema and kind:
        return f"{kind}, ≤ {schema['maxLength']:,}"
    items = schema.get("items", {})
    return f"{kind}: {describe_values(items)}" if items else kind
