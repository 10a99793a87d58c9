"""A strict reader of Prometheus' text format 0.0.4; what the format doesn't allow is a failed assertion."""

import re
from dataclasses import dataclass, field

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")
VALUE = re.compile(r"[+-]?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|Inf)|NaN")
KINDS = {"counter", "gauge", "histogram", "summary", "untyped"}
ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


@dataclass
class Read:
    """A family as it was read."""

    kind: str
    help: str
    samples: dict[frozenset[tuple[str, str]], float] = field(default_factory=dict)

    def only(self) -> float:
        """Give the value of the one sample."""
        (value,) = self.samples.values()
        return value

    def of(self, **labels: str) -> float:
        """Give the value of the sample that has these labels among its own."""
        (value,) = (value for has, value in self.samples.items() if set(labels.items()) <= has)
        return value


def read_exposition(text: str) -> dict[str, Read]:
    """Read a whole exposition: each family's HELP, TYPE and samples stand together, once."""
    assert text.endswith("\n") and "\n\n" not in text
    found: dict[str, Read] = {}
    lines = iter(text.removesuffix("\n").split("\n"))
    for line in lines:
        helped = re.fullmatch(rf"# HELP ({NAME}) ((?:[^\\]|\\\\|\\n)+)", line)
        if helped:
            typed = re.fullmatch(rf"# TYPE ({NAME}) (\w+)", next(lines))
            assert typed and typed[1] == helped[1] and typed[2] in KINDS, line
            assert typed[1] not in found, f"{typed[1]} twice"
            found[typed[1]] = current = Read(typed[2], helped[2])
        else:
            _add(line, next(reversed(found)), current)
    return found


def _add(line: str, name: str, family: Read) -> None:
    sample = SAMPLE.fullmatch(line)
    assert sample and sample[1] == name, line
    pairs = [(key, _unescaped(value)) for key, value in re.findall(LABEL, sample[2] or "")]
    labels = frozenset(pairs)
    assert len({key for key, _ in pairs}) == len(pairs) and labels not in family.samples, line
    assert VALUE.fullmatch(sample[sample.lastindex or 0]), line
    family.samples[labels] = float(sample[sample.lastindex or 0])


def _unescaped(text: str) -> str:
    return re.sub(r"\\.", lambda found: ESCAPES[found[0]], text)
