"""What the cells of a parameter table and the rows of an error table say, where they say it in one of the usual forms.

What is in no such form is None and left to a person: a wrong guess costs more than an open place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from aclnn_cts.authoring.model import Document, ErrorRow, ParameterColumn, Row, Statement
from aclnn_cts.core.attention import LAYOUTS
from aclnn_cts.core.dtypes import DTYPES, FORMATS

_DTYPE_WORDS = {"FLOAT32": "FLOAT", "BFLOAT16": "BF16", "FP32": "FLOAT", "FP16": "FLOAT16", "FLOAT64": "DOUBLE"}
_SEPARATORS = re.compile(r"[、,，和/;；\s]+")
_SAME_WORDS = r"(?:保持一致|类型一致|一致|相同|一样)"
_PARTS = re.compile("[，,；;。]")
_RANK_WORD = re.compile("(?<![A-Z])维[度数]")
_WORD = r"(?<![A-Za-z0-9_]){}(?![A-Za-z0-9_])"
_RANGE = re.compile(r"(\d{1,2})\s*[-~～–]\s*(\d{1,2})(?:维)?[。.]?\Z")
_CHOICE = re.compile(r"\d{1,2}(?:\s*[、,，/]\s*\d{1,2})*(?:维)?[。.]?\Z")
_SHAPE = re.compile(r"[(\[（]\s*([A-Za-z][A-Za-z0-9_]*(?:\s*[,，]\s*[A-Za-z0-9][A-Za-z0-9_]*)*)\s*[,，]?\s*[)\]）]\Z")
_INTERVAL = re.compile(r"\[\s*(-?\d{1,18})\s*[,，]\s*(-?\d{1,18})\s*\]")
_NOT_FORMATS = re.compile(r"(?:数据)?格式不支持\s*((?:[A-Z][A-Z0-9_]*[、,，\s]*)+)")
_ONLY_FORMATS = re.compile(r"(?:数据)?格式(?:仅|只)?支持\s*((?:[A-Z][A-Z0-9_]*[、,，和\s]*)+)")
_FIGURES = re.compile(r"支持(?:配置)?(\d)\s*[~～]\s*(\d)[。.]?\Z")
_CHOSEN = re.compile(r"(?:支持|取值为|取值|\||[、,，;；。]|\A)\s*(\d)\s*(?:[(（:：]|表示|代表)")
"""A number of a closed set with its meaning: `0(none)|1(mean)`, `支持0：none、1：mean`, `0表示none`."""
_MEANT = re.compile(r"(?<!\d)(\d)\s*[(（:：]\s*'?([A-Za-z_]{2,30})'?")
_NOT_DTYPES = re.compile(r"不支持\s*((?:[A-Z][A-Z0-9_]*[、,，\s]*)+)")
_ONLY_DTYPES = re.compile(r"数据类型(?:仅|只)?支持\s*((?:[A-Z][A-Z0-9_]*[、,，\s]*)+)")


def _listed(text: str, words: Mapping[str, object], aliases: Mapping[str, str]) -> tuple[str, ...] | None:
    """The words of a list, each known; None where anything else is in it."""
    found = [word for word in _SEPARATORS.split(text.strip().rstrip("。.")) if word]
    names = [aliases.get(word.upper(), word.upper()) for word in found]
    return tuple(dict.fromkeys(names)) if names and all(name in words for name in names) else None


def _dtypes(text: str) -> tuple[str, ...] | None:
    return _listed(text, DTYPES, _DTYPE_WORDS)


def _formats(text: str) -> tuple[str, ...] | None:
    return _listed(text, FORMATS, {})


def names_in(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Those of the names that a text holds, in their order."""
    return tuple(name for name in names if re.search(_WORD.format(re.escape(name)), text))


@dataclass(frozen=True, slots=True)
class SharedProperty:
    """The parameter whose dtype, shape or format another one shares, and the statement that says so."""

    other: str
    statement: Statement


@dataclass(frozen=True, slots=True)
class RankRange:
    """Numbers of dimensions: bounds, and whether the document leaves some between them out."""

    low: int
    high: int
    has_gaps: bool = False


def role_of(row: Row | None, c_type: str) -> str:
    """The role of a tensor: by its cell, or where there is none by its C type."""
    text = row.text(ParameterColumn.ROLE) if row is not None else ""
    if "输出" in text:
        return "inout" if "输入" in text else "output"
    written = "输入" not in text and c_type.startswith(("aclTensor *", "aclTensorList *"))
    return "output" if written else "input"


def is_optional(row: Row | None, name: str) -> bool:
    """Whether the document lets a parameter be null."""
    if row is None:
        return "Optional" in name
    return "可选" in row.text(ParameterColumn.ROLE) or "Optional" in name


def same_as(row: Row, column: ParameterColumn, names: Sequence[str]) -> SharedProperty | None:
    """The one other parameter whose dtype, shape or format this one has, by its own cell or its remarks."""
    what = {
        ParameterColumn.DTYPE: r"(?:数据类型|dtype)",
        ParameterColumn.FORMAT: "(?:数据)?格式",
        ParameterColumn.RANK: "shape",
    }[column]
    for own, statement in _own_and_remarks(row, column):
        text = statement.text
        if any(word in text for word in ("推导", "broadcast", "除", "当", "如果", "或", "不低于")):
            continue
        if not own and re.search(what, text, re.IGNORECASE) is None:
            continue
        if own and (column is not ParameterColumn.RANK) and "shape" in text:
            continue
        for part in _on_shapes(text, own=own) if column is ParameterColumn.RANK else [text]:
            others = _like(part, row, names)
            if len(others) == 1:
                return SharedProperty(others[0], statement)
    return None


def _on_shapes(text: str, *, own: bool) -> Iterator[str]:
    """The parts of a text on whole shapes: one on dimensions (维) is on their number, or on some of them."""
    for part in _PARTS.split(text):
        if "维" not in part and (own or "shape" in part):
            yield part


def broadcasts_with(row: Row, names: Sequence[str]) -> str | None:
    """The one other parameter whose shape a remark says that this one broadcasts with, in any of the usual forms."""
    for statement in row.cells.get(ParameterColumn.USAGE, ()):
        found = _BROADCASTING.search(statement.text)
        others = names_in(found[1], [name for name in names if name != row.name]) if found is not None else ()
        if len(others) == 1:
            return others[0]
    return None


def is_deterministic(document: Document) -> bool:
    """Whether a limit says of all calls that equal ones give equal bits."""
    found = [_DETERMINISM.search(item.text) for item in document.statements if item.address.startswith("limits/")]
    said = [match[1] is None for match in found if match is not None]
    return bool(said) and all(said)


def forward_of(document: Document) -> str | None:
    """The forward operator that the first line on the function names, where it says that this one is its backward."""
    text = next((item.text for item in document.statements if item.address == "function/1"), "")
    found = re.search(r"(aclnn[A-Za-z0-9]{1,100})", text)
    is_backward = re.search(r"反向(?:传播|计算|梯度)|梯度计算", text) is not None
    return found[1] if found is not None and is_backward and found[1] != document.operator else None


def same_rank_as(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    """The parameters that a tensor has as many dimensions as, by its own cell or its remarks."""
    texts = (statement.text for _, statement in _own_and_remarks(row, ParameterColumn.RANK))
    parts = (part for text in texts for part in _PARTS.split(text) if _RANK_WORD.search(part) is not None)
    return next((others for part in parts if (others := _like(part, row, names))), ())


def _like(text: str, row: Row, names: Sequence[str]) -> tuple[str, ...]:
    """The other parameters that a tensor is said to agree with."""
    found = re.search(rf"(?:与|和|同)(.+?)(?:的)?(?:[^与和]*?){_SAME_WORDS}", text)
    return names_in(found[0], [name for name in names if name != row.name]) if found is not None else ()


def related_dtypes(row: Row, names: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
    """How a remark relates a tensor's dtype to those of others: `promotes`, `cast` or `promoted`, and the others."""
    for statement in row.cells.get(ParameterColumn.USAGE, ()):
        text = statement.text
        others = names_in(text, [name for name in names if name != row.name])
        if statement.products is not None or not others or _DTYPE.search(text) is None or "如果" in text:
            continue
        if _PROMOTES.search(text) is not None:
            return DtypeDependence.PROMOTES, others
        if _CONVERTIBLE.search(text) is not None:
            return DtypeDependence.CAST, others
        if re.search(r"推导后的结果一致", text) is not None:
            return DtypeDependence.PROMOTED, others
    return None


def _own_and_remarks(row: Row, column: ParameterColumn) -> Iterator[tuple[bool, Statement]]:
    yield from ((True, statement) for statement in row.cells.get(column, ()))
    yield from ((False, statement) for statement in row.cells.get(ParameterColumn.USAGE, ()))


def dtypes_by_product(
    document: Document, name: str, products: Sequence[str]
) -> tuple[Mapping[str, tuple[str, ...]], tuple[Statement, ...]] | None:
    """The dtypes of a parameter by product, and the statements that say so; None where its cell lists none.

    Remarks beside the table and cells of limits that exclude dtypes, or replace the list, on some products are followed
    where they name the parameter or none.
    """
    return _by_product(document, name, products, _DTYPE_LISTS)


def formats_by_product(
    document: Document, name: str, products: Sequence[str]
) -> tuple[Mapping[str, tuple[str, ...]], tuple[Statement, ...]] | None:
    """The formats of a parameter by product, as `dtypes_by_product` finds dtypes."""
    return _by_product(document, name, products, _FORMAT_LISTS)


@dataclass(frozen=True, slots=True)
class _Lists:
    """How documents list the dtypes or formats of a parameter, and change the list on some products."""

    column: ParameterColumn
    topic: str
    listed: Callable[[str], tuple[str, ...] | None]
    excluded: re.Pattern[str]
    only: re.Pattern[str]


_DTYPE_LISTS = _Lists(ParameterColumn.DTYPE, "数据类型", _dtypes, _NOT_DTYPES, _ONLY_DTYPES)
_FORMAT_LISTS = _Lists(ParameterColumn.FORMAT, "格式", _formats, _NOT_FORMATS, _ONLY_FORMATS)


def _by_product(
    document: Document, name: str, products: Sequence[str], lists: _Lists
) -> tuple[Mapping[str, tuple[str, ...]], tuple[Statement, ...]] | None:
    row = document.rows.get(name)
    cell = row.cells.get(lists.column, ()) if row is not None else ()
    read = [(statement, lists.listed(statement.text)) for statement in cell]
    if not read or any(words is None for _, words in read):
        return None
    tables: dict[str, tuple[str, ...]] = {}
    used = [statement for statement, _ in read]
    for product in products:
        found = [words or () for statement, words in read if statement.applies_to(product)]
        tables[product] = tuple(dict.fromkeys(word for words in found for word in words))
    for statement in document.statements:
        if statement.products is None or not _is_on_list(document, statement, name, lists.topic):
            continue
        excluded, only = lists.excluded.search(statement.text), lists.only.search(statement.text)
        change = excluded or only
        words = lists.listed(change[1]) if change is not None else None
        if words is None:
            continue
        used.append(statement)
        for product in statement.products:
            if product in tables:
                kept = [item for item in tables[product] if (item in words) is (excluded is None)]
                tables[product] = tuple(kept)
    return tables, tuple(used)


def _is_on_list(document: Document, statement: Statement, name: str, topic: str) -> bool:
    """Whether a remark, or a cell of a table of limits, may change the list of a parameter: it names that, or none."""
    text, own = statement.text, statement.address.startswith(f"params/{name}/usage")
    if not own and not statement.address.startswith(("params/note/", "limits/table")):
        return False
    if any(word in text for word in ("当", "其他参数")) or (topic not in text and not text.startswith("不支持")):
        return False
    about = names_in(text, [item.name for item in document.parameters])
    return own or not about or name in about


def formats_of(row: Row) -> tuple[str, ...] | None:
    """The formats that a cell lists; None where it lists none."""
    cell = row.cells.get(ParameterColumn.FORMAT, ())
    return _formats(cell[0].text) if len(cell) == 1 else None


def ranks_of(row: Row) -> RankRange | None:
    """The numbers of dimensions that a cell states, by figures or by a shape."""
    cell = row.cells.get(ParameterColumn.RANK, ())
    if len(cell) != 1:
        return None
    text = cell[0].text.strip()
    if (found := _RANGE.match(text)) is not None and int(found[1]) <= int(found[2]):
        return RankRange(int(found[1]), int(found[2]))
    if _CHOICE.match(text) is not None:
        numbers = sorted({int(word) for word in re.findall(r"\d{1,2}", text)})
        return RankRange(numbers[0], numbers[-1], has_gaps=numbers[-1] - numbers[0] >= len(numbers))
    shape = shape_of(row)
    return RankRange(len(shape), len(shape)) if shape is not None else None


def shape_of(row: Row) -> tuple[str, ...] | None:
    """The named sizes of a cell such as `(N, C)`, or of a layout of attention such as `[TND]`."""
    cell = row.cells.get(ParameterColumn.RANK, ())
    found = _SHAPE.match(cell[0].text.strip()) if len(cell) == 1 else None
    if found is None:
        return None
    return tuple(found[1]) if found[1] in LAYOUTS else tuple(word.strip() for word in re.split("[,，]", found[1]))


def strided_of(row: Row) -> bool | None:
    """Whether the table allows a tensor that is not contiguous; None where it does not say."""
    text = row.text(ParameterColumn.STRIDED).strip()
    return True if text.startswith("√") else False if text[:1] in ("×", "x", "X") and text else None


def empty_of(row: Row) -> tuple[bool, Statement] | None:
    """Whether a remark allows a tensor without elements, and that remark."""
    for statement in row.cells.get(ParameterColumn.USAGE, ()):
        found = re.match(r"(不)?支持空\s*tensor[。.]?\Z", statement.text.strip(), re.IGNORECASE)
        if found is not None and statement.products is None:
            return found[1] is None, statement
    return None


def values_in(row: Row) -> tuple[int, int] | None:
    """The range of whole numbers that a remark states in figures: `[0, 255]`, `0~2`, or `0(none)|1(mean)|2(sum)`."""
    for statement in row.cells.get(ParameterColumn.USAGE, ()):
        found = _INTERVAL.search(statement.text) or _FIGURES.match(statement.text)
        if found is not None:
            low, high = int(found[1]), int(found[2])
        else:
            numbers = {int(word) for word in _CHOSEN.findall(statement.text)}
            if len(numbers) < 2 or len(numbers) <= max(numbers) - min(numbers):
                continue
            low, high = min(numbers), max(numbers)
        if low <= high:
            return low, high
    return None


def choices_of(row: Row) -> dict[int, str]:
    """The words that a closed set of numbers stands for: `0(none)|1(mean)`, `支持0：zeros、1：border`; else nothing."""
    for statement in row.cells.get(ParameterColumn.USAGE, ()):
        found = {int(number): word for number, word in _MEANT.findall(statement.text)}
        if len(found) > 1 and values_in(row) == (min(found), max(found)):
            return found
    return {}


def length_of(row: Row) -> int | None:
    """The number of items of an array that a remark states: `size为2`."""
    for statement in (*row.cells.get(ParameterColumn.USAGE, ()), *row.cells.get(ParameterColumn.DESCRIPTION, ())):
        found = re.match(
            r"(?:size|size大小|长度)\s*(?:必须|固定)?为\s*(\d)(?:[。.，,]|\Z)(?!.*或)", statement.text, re.IGNORECASE
        )
        if found is not None and statement.products is None:
            return int(found[1])
    return None


class DtypeDependence:
    """How the dtype of a tensor depends on those of others."""

    PROMOTES = "promotes"
    CAST = "cast"
    PROMOTED = "promoted"


class ErrorTopic:
    """What a condition of the error table is about; names of the constraints that it lists a code for."""

    NULL = "null"
    DTYPE = "dtype"
    SAME_DTYPE = "same_dtype"
    PROMOTION = "promotion"
    CAST = "cast"
    FORMAT = "format"
    SAME_FORMAT = "same_format"
    RANK = "rank"
    SHAPE = "shape"
    RANGE = "range"
    BROADCAST = "broadcast"


_DTYPE = re.compile("数据类型|dtype")
_BROADCASTING = re.compile(
    r"shape(?:需要|需)?[与和]([A-Za-z0-9_、,，和与 ]{1,120})(?:的shape)?满足(?:broadcast|广播)关系", re.IGNORECASE
)
_DETERMINISM = re.compile(r"默认(?:为|支持)?(非)?确定性(?:实现|计算)")
_PROMOTES = re.compile("满足(?:数据类型)?推导规则")
_CONVERTIBLE = re.compile("可转换的数据类型")
_UNPROMOTED = re.compile("不满足(?:数据类型)?推导规则")
_INCONVERTIBLE = re.compile("不能转换|无法转换|不是.{1,40}可转换的")
_UNLISTED = re.compile(r"不在(?:可)?支持|不是支持|不支持|不在指定|不满足要求")
_UNBROADCAST = re.compile(r"(?:无法|不能|不可|不满足)[^，。]{0,8}broadcast", re.IGNORECASE)
_UNCOMPUTED = re.compile(r"当?\w{1,60}\[\d\]为true(?:，|且)(?:传入的)?(\w{1,60}?)[是为]空指针", re.IGNORECASE)
_UNEQUAL = re.compile(r"不一致|不同|不相同|不相等|不一样|不匹配")
_OUTSIDE = re.compile(r"值?(?:不在|超出|超过).{0,12}范围")
_NO_VALUE = re.compile("数据类型|dtype|格式|shape|维")
_RANKS = re.compile(
    r"(?:维度|维数|shape(?!\[)|dim|rank|维).{0,12}(?:超过|大于|小于|不为|不等于|不是|不在).{0,12}\d|的(?:维度|维数)等于0"
)


_UNLISTED_SHAPE = re.compile(r"shape(?:在支持(?:的)?范围之外|不在支持(?:的)?范围)")
_TOO_MANY = re.compile("(?!.*(?:小于|不|等于0)).*(?:超过|大于)")
_DTYPE_NOTE = re.compile(
    r"(?:[^：:]{0,80}[：:])?(?:参数)?[A-Za-z0-9_、,，和 ]{0,300}的?数据类型"
    r"(?:不|仅|只)?支持[A-Z][A-Z0-9_、,， ]{0,200}。?\Z"
)
_LENGTH = re.compile(r"[A-Za-z0-9_]{1,60}的(?:长度|size)(?:不为|不等于|不是)(\d)。?\Z")


def is_on_too_many_dimensions(text: str) -> bool:
    """Whether a condition on numbers of dimensions is that there are too many, and says nothing of too few."""
    return _TOO_MANY.match(text) is not None


def is_dtype_note(text: str) -> bool:
    """Whether a remark says which dtypes some parameters have, and nothing else."""
    return _DTYPE_NOTE.match(text) is not None


def length_in_error(text: str, names: Sequence[str]) -> tuple[str, int] | None:
    """The array and its number of items, where a condition is that it has another one."""
    about = names_in(text, names)
    found = _LENGTH.match(text)
    return (about[0], int(found[1])) if found is not None and len(about) == 1 else None


def error_topics(row: ErrorRow, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The topics of a condition, and the parameters that it names; no topic where it has a form of its own."""
    text = row.statement.text
    about = names_in(text, names)
    if row.status == "ACLNN_ERR_PARAM_NULLPTR":
        plain = re.search(r"空指针|nullptr|null", text, re.IGNORECASE) is not None and "当" not in text
        if (computed := _UNCOMPUTED.match(text)) is not None:
            return (ErrorTopic.NULL,), names_in(computed[1], names)
        return ((ErrorTopic.NULL,) if plain else ()), about
    if re.search(r"当|如果|若|非空[时且]", text) is not None:
        return (), about
    unlisted = _UNLISTED.search(text) is not None
    unequal = not unlisted and len(about) > 1 and _UNEQUAL.search(text) is not None
    has_ranks = any(form.search(text) is not None for form in (_RANKS, _UNLISTED_SHAPE))
    found = {
        ErrorTopic.DTYPE: _DTYPE.search(text) is not None and unlisted,
        ErrorTopic.SAME_DTYPE: _DTYPE.search(text) is not None and unequal,
        ErrorTopic.PROMOTION: _UNPROMOTED.search(text) is not None,
        ErrorTopic.CAST: _DTYPE.search(text) is not None and _INCONVERTIBLE.search(text) is not None,
        ErrorTopic.FORMAT: "格式" in text and unlisted,
        ErrorTopic.SAME_FORMAT: "格式" in text and unequal,
        ErrorTopic.RANK: has_ranks,
        ErrorTopic.RANGE: len(about) == 1 and _OUTSIDE.search(text) is not None and _NO_VALUE.search(text) is None,
        ErrorTopic.SHAPE: not has_ranks and "shape" in text and "轴" not in text and unequal,
        ErrorTopic.BROADCAST: _UNBROADCAST.search(text) is not None,
    }
    return tuple(topic for topic, is_topic in found.items() if is_topic), about
