"""Text in figures: names from outside made harmless, numbers made readable."""

from __future__ import annotations

import html
import math
import unicodedata
from typing import TYPE_CHECKING

from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "KIND_TITLES",
    "MINUS",
    "count",
    "cut",
    "duration",
    "first_ranks",
    "full",
    "number",
    "of_more",
    "percent",
    "safe",
    "short",
    "short_unique",
]

MINUS = "\N{MINUS SIGN}"
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_MAX_NAME = 300
_LONGEST = 1e7
"""Greater numbers are written with an exponent."""

KIND_TITLES = {
    Kind.WEIGHT: "weights",
    Kind.BIAS: "biases",
    Kind.BUFFER: "buffers",
    Kind.GRADIENT: "gradients",
    Kind.ACTIVATION: "activations",
    Kind.INPUT: "inputs",
    Kind.LOSS: "losses",
    Kind.OPTIMIZER: "optimizer",
    Kind.SCALAR: "metrics",
    Kind.CUSTOM: "recorded tensors",
    Kind.COST: "cost of capture",
}


def safe(text: object) -> str:
    """`text` as plotly must get it to show it literally.

    Plotly reads a little HTML (``<b>``, ``<a href>``, ``<extra>``) and templates (``%{x}``) in most texts.
    Control and direction-changing characters are replaced, since they garble what stands beside them.
    """
    cleaned = str(text)
    if not cleaned.isprintable():
        cleaned = "".join("\N{REPLACEMENT CHARACTER}" if _is_control(char) else char for char in cleaned)
    return html.escape(cleaned, quote=False).replace("%{", "%\N{ZERO WIDTH NON-JOINER}{")


def full(name: str) -> str:
    """A whole name, safe; only a monstrous one is cut."""
    return safe(cut(name, _MAX_NAME))


def short(name: str, length: int = 36) -> str:
    """A name cut in the middle (its end tells more than its start), safe."""
    return safe(cut(name, length))


def short_unique(names: Sequence[str], length: int = 36) -> list[str]:
    """Short names, still different from each other, without a prefix up to ``/`` they all share.

    Where one of them is too long, they are without the modules that they all lie in, too.
    """
    heads = {name.split("/", 1)[0] if "/" in name else None for name in names}
    common = heads.pop() if len(heads) == 1 else None
    bare = [name[len(common) + 1 :] or name for name in names] if common is not None else list(names)
    if any(len(name) > length for name in bare):
        bare = _without_modules_around(bare)
    seen: dict[str, int] = {}
    answer = []
    for each in bare:
        text = short(each, length)
        seen[text] = seen.get(text, 0) + 1
        answer.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return answer


def _without_modules_around(names: Sequence[str]) -> list[str]:
    """Names without the modules that all of them lie in; each keeps its last two parts."""
    parts = [name.split(".") for name in names]
    shared = 0
    while all(len(one) > shared + 2 and one[shared] == parts[0][shared] for one in parts):
        shared += 1
    return [".".join(one[shared:]) for one in parts]


def number(value: float, digits: int = 4) -> str:
    """A value with `digits` significant digits: ``0.0123``, ``1.2e-7``, ``2,080``, ``NaN``, ``+inf``."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+inf" if value > 0 else f"{MINUS}inf"
    text = f"{abs(value):.{digits}g}"
    if "e+" in text and abs(value) < _LONGEST:
        text = f"{float(text):,.0f}"
    elif "e" in text:
        mantissa, exponent = text.split("e")
        text = f"{mantissa}e{int(exponent)}".replace("e-", f"e{MINUS}")
    return f"{MINUS}{text}" if value < 0 else text


def duration(seconds: float) -> str:
    """A time in its own unit: ``320 us``, ``45.1 ms``, ``1.2 s``, ``5 min``, ``2.5 h``."""
    units = (("h", 3600.0, 7200.0), ("min", 60.0, 120.0), ("s", 1.0, 1.0), ("ms", 1e-3, 1e-3))
    for unit, size, least in units:
        if seconds >= least:
            return f"{number(seconds / size, 3)} {unit}"
    return f"{number(seconds / 1e-6, 3)} us"


def count(value: int, noun: str, plural: str | None = None) -> str:
    """``1 step``, ``12,000 steps``."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


def of_more(drawn: int, there: int) -> str:
    """What follows the number of tensors that are drawn, where there are more."""
    return f" (of {there:,}; choose others by name or pattern)" if there > drawn else ""


def first_ranks(drawn: int, there: int) -> str:
    """What follows a caption where not all ranks are drawn."""
    return f" The first {drawn} of {there:,} ranks are drawn." if there > drawn else ""


def percent(share: float) -> str:
    """A share from 0 to 1 in percent; a tiny one does not become 0%, a nearly full one not 100%."""
    if 0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 < share < 1:
        return ">99.9%"
    return f"{share:.1%}"


def cut(name: str, length: int) -> str:
    """A name cut in the middle, not safe yet."""
    if len(name) <= length:
        return name
    head = (length - 1) // 3
    return name[:head] + _ELLIPSIS + name[len(name) - (length - 1 - head) :]


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
