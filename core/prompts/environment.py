"""The sandbox that chat templates render in: Jinja with Hugging Face's additions. For the helper only."""

import json
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, NoReturn

from jinja2 import Template, TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from octavo.core.prompts.lookalikes import Marks

# a template repeats a dash or an indent, never more than this
REPEAT_LIMIT = 10_000
POWER_LIMIT = 64
BITS_LIMIT = 4_096

_SPLITTING = ("split", "rsplit", "splitlines", "partition", "rpartition")


class RaisedByTemplate(TemplateError):
    """The template called ``raise_exception``."""


class GenerationTag(Extension):
    """``{% generation %}`` marks the model's own turns for training; here its body simply renders."""

    tags = {"generation"}  # noqa: RUF012 (Jinja's own declaration)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Give the body between the tags."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class Sandbox(ImmutableSandboxedEnvironment):
    """No private attributes, no changes to what was passed in, no huge products; ``marks`` are in use."""

    intercepted_binops = frozenset({"*", "**"})
    marks = Marks("\ue000", "\ue001")

    def call(self, context: Context, called: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call something; string methods that look at the edges of a text look past the marks."""
        name, owner = getattr(called, "__name__", ""), getattr(called, "__self__", None)
        if isinstance(owner, str) and name in ("startswith", "endswith"):
            called = getattr(self.marks.remove(owner), name)
        result = super().call(context, called, *args, **kwargs)
        if isinstance(owner, str) and name in _SPLITTING:
            return type(result)(map(self.marks.mend, result))
        return result

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Refuse products and powers that only serve to use up time or memory."""
        if operator == "**":
            _check_power(left, right)
        else:
            _check_product(left, right)
        return super().call_binop(context, operator, left, right)


def _check_power(left: Any, right: Any) -> None:
    if not (isinstance(left, int | float) and isinstance(right, int | float) and abs(right) <= POWER_LIMIT):
        raise SecurityError("a power this large is not allowed")
    if isinstance(left, int) and left.bit_length() > POWER_LIMIT:
        raise SecurityError("a power this large is not allowed")


def _check_product(left: Any, right: Any) -> None:
    for repeated, times in ((left, right), (right, left)):
        if isinstance(repeated, str | bytes | list | tuple) and isinstance(times, int):
            if len(repeated) * times > REPEAT_LIMIT:
                raise SecurityError("repeating text this often is not allowed")
            return
    if (
        isinstance(left, int)
        and isinstance(right, int)
        and left.bit_length() + right.bit_length() > BITS_LIMIT
    ):
        raise SecurityError("a number this large is not allowed")


# compiling and rendering this loads all that Jinja and Python load late; afterwards no file may open
_WARM_UP = r"""
{% macro m(a) %}{{ '\x61' ~ a }}{% endmacro %}{% set n = namespace(x=[1]) %}
{% for c in 'ab' if c %}{{ m(c) | trim | e }}{% continue %}{% endfor %}{% generation %}{% endgeneration %}
{{ {'a': 1.5} | tojson(indent=1) }}{{ strftime_now('%d %b %Y') }}{{ n | pprint }}
{{ 'a b' | urlize }}{{ [1] | random }}{{ '%s' % 'a' }}{{ '{:>3}'.format(1) }}{{ 'a b'.split() | join }}
{{ [{'a': 1}] | map(attribute='a') | list | sum }}
{{ {'a': 1} | dictsort }}{{ [1] | groupby(0) if false }}{{ 'a' | wordwrap(3) }}{{ 3 | filesizeformat }}
"""


class Templates:
    """Compiles templates and keeps the last few."""

    def __init__(self) -> None:
        self._sandbox = Sandbox(
            trim_blocks=True, lstrip_blocks=True, extensions=[LoopControlExtension, GenerationTag]
        )
        self._sandbox.filters["tojson"] = self._to_json
        self._sandbox.globals.update(raise_exception=_raise_exception, strftime_now=_now)
        del self._sandbox.globals["lipsum"]
        self.compile: Callable[[str], Template] = lru_cache(maxsize=16)(self._sandbox.from_string)
        self.compile(_WARM_UP).render()

    def use(self, marks: Marks) -> None:
        """Take the marks of the next render."""
        self._sandbox.marks = marks

    def _to_json(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """Write JSON as Hugging Face does: nothing escaped for HTML; the marks stay what they are."""
        text = json.dumps(
            value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )
        if ensure_ascii:
            for mark in (self._sandbox.marks.start, self._sandbox.marks.end):
                text = text.replace(json.dumps(mark)[1:-1], mark)
        return text


def _raise_exception(message: object) -> NoReturn:
    raise RaisedByTemplate(str(message))


def _now(pattern: str) -> str:
    return datetime.now().strftime(pattern)
