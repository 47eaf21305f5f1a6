"""A function for each op that a starting point leaves to be written, from the types of the ops."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from msgspec import structs

from conformance.clients.adapter.ops.define import Arguments, Nothing
from conformance.clients.adapter.profile import ops_of
from conformance.clients.adapter.schema import reported

#: What begins a line of a comment, with its indentation.
COMMENTS: Mapping[str, str] = {
    "python": "    # ",
    "node": "    // ",
    "go": "// ",
    "java": "  // ",
    "rust": "/// ",
}
#: The function of an op: ``{op}`` is its name on the line, ``{name}`` that of the function, ``{args}`` what
#: it needs.
_FUNCTIONS: Mapping[str, str] = {
    "python": """\
    @op("{op}")
    async def {name}(self, {typed}, args: dict[str, Any]) -> dict[str, Any]:
        raise Failure("unsupported", "{op} is not written yet")
""",
    "node": """\
    "{op}": async ({{ {args}, ...more }}) => {{
      throw new Failure("unsupported", "{op} is not written yet")
    }},
""",
    "go": """\
func {name}(c *kit.Call) (any, error) {{
	return nil, kit.Fail("unsupported", "{op} is not written yet")
}}
""",
    "java": """\
  private static Object {name}(Call call) {{
    throw new Failure("unsupported", "{op} is not written yet");
  }}
""",
    "rust": """\
async fn {name}(_call: Call) -> Answer {{
    Err(Failure::new("unsupported", "{op} is not written yet"))
}}
""",
}
_CALLED: Mapping[str, str] = {
    "go": '	adapter.Op("{op}", {name})',
    "java": '    kit.op("{op}", Main::{name});',
    "rust": '    adapter.op("{op}", {name});',
}
_WIDTH = 105


def stubs(language: str, protocol: str, ops: Sequence[str]) -> list[str]:
    """The lines of the functions, each with what its op takes and gives."""
    lines: list[str] = []
    for name in ops:
        kind = ops_of(protocol)[name]
        needed = [field.encode_name for field in structs.fields(kind) if field.required]
        lines += _comment(language, name, kind)
        lines += (
            _FUNCTIONS[language]
            .format(
                op=name,
                name=_name(name, language),
                args=", ".join(needed),
                typed=", ".join(f"{each}: Any" for each in needed),
            )
            .split("\n")
        )
    return lines


def called(language: str, protocol: str, ops: Sequence[str]) -> list[str]:
    """The lines that tell the kit of the functions."""
    return [_CALLED[language].format(op=name, name=_name(name, language)) for name in ops]


def _comment(language: str, name: str, kind: type[Arguments]) -> list[str]:
    fields = [f"{field.encode_name}{'' if field.required else '?'}" for field in structs.fields(kind)]
    result = kind.spec.result
    given = [f"{field.encode_name}{'' if field.required else '?'}" for field in structs.fields(result)]
    gives = "{}" if result is Nothing else ", ".join(given)
    sentence = reported(kind)[0].replace("`", '"')
    text = f"{sentence} Takes {', '.join(fields)}; gives {gives}."
    lead = COMMENTS[language]
    return [f"{lead}{line}" for line in textwrap.wrap(f"{name}: {text}", _WIDTH - len(lead))]


def _name(op: str, language: str) -> str:
    """``mol.call`` as the name of a function."""
    words = op.replace(".", "_").split("_")
    if language in ("python", "rust"):
        return "_".join(words)
    return words[0] + "".join(word.capitalize() for word in words[1:])
