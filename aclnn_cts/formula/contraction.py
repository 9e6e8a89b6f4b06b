"""Sums of products of two arrays as one matrix product: what `einsum` does for two operands, planned once a shape."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Contraction:
    """How the operands of given shapes become stacks of matrices, and the stack of products the result."""

    left: tuple[int, ...]
    """The order of the left operand's dimensions: those in both operands and the result, its own, those summed over."""
    right: tuple[int, ...]
    """The same of the right operand, with what is summed over before its own."""
    left_shape: tuple[int, ...]
    right_shape: tuple[int, ...]
    whole: tuple[int, ...]
    """The product's shape with its dimensions apart."""
    order: tuple[int, ...]
    shape: tuple[int, ...]
    """Of the result."""
    terms: int
    """How many products are summed for an element of the result."""

    def __call__(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """The sums of products."""
        first = left.transpose(self.left).reshape(self.left_shape)
        second = right.transpose(self.right).reshape(self.right_shape)
        product: NDArray[Any] = first @ second
        return self.apart(product)

    def products(self, left: NDArray[Any], right: NDArray[Any], first: int, last: int) -> NDArray[Any]:
        """The terms of all sums from one place to another, along a first axis of their own; `apart` takes their sum."""
        one = left.transpose(self.left).reshape(self.left_shape)[..., first:last]
        other = right.transpose(self.right).reshape(self.right_shape)[..., first:last, :]
        made: NDArray[Any] = one[..., None] * other[..., None, :, :]
        moved: NDArray[Any] = np.moveaxis(made, -2, 0)
        return moved

    def apart(self, product: NDArray[Any]) -> NDArray[Any]:
        """What was computed as a stack of matrices, in the shape of the result."""
        whole: NDArray[Any] = product.reshape(self.whole)
        ordered: NDArray[Any] = whole.transpose(self.order)
        return ordered


@functools.lru_cache(maxsize=1024)
def subscripts_of(subscripts: str) -> tuple[str, str, str]:
    """The letters of both operands and of the result. ValueError for what is no sum of products of two arrays."""
    sides, arrow, out = subscripts.replace(" ", "").partition("->")
    left, comma, right = sides.partition(",")
    letters = (left, right, out)
    if not arrow or not comma or any(len(set(word)) != len(word) for word in letters):
        raise ValueError(f"{subscripts!r}: expected two operands and a result, as 'ij,jk->ik', no letter twice in one")
    if not set(out) <= set(left) | set(right):
        raise ValueError(f"{subscripts!r}: a letter of the result is in no operand")
    alone = (set(left) ^ set(right)) - set(out)
    if alone:
        raise ValueError(
            f"{subscripts!r}: {''.join(sorted(alone))!r} is summed over in one operand alone; sum it first"
        )
    return letters


@functools.lru_cache(maxsize=1024)
def contract(subscripts: str, left: tuple[int, ...], right: tuple[int, ...]) -> Contraction:
    """The plan for operands of these shapes. ValueError where subscripts or sizes do not fit."""
    first, second, out = subscripts_of(subscripts)
    sizes = dict(zip(first, left, strict=True))
    for letter, size in zip(second, right, strict=True):
        if sizes.setdefault(letter, size) != size:
            raise ValueError(f"{subscripts!r}: {letter!r} is {sizes[letter]} in one operand and {size} in the other")
    shared = [letter for letter in out if letter in first and letter in second]
    own_left = [letter for letter in out if letter in first and letter not in second]
    own_right = [letter for letter in out if letter in second and letter not in first]
    summed = [letter for letter in first if letter not in out]

    def product(letters: list[str]) -> int:
        return math.prod(sizes[letter] for letter in letters)

    stack = tuple(sizes[letter] for letter in shared)
    made = [*shared, *own_left, *own_right]
    return Contraction(
        left=tuple(first.index(letter) for letter in (*shared, *own_left, *summed)),
        right=tuple(second.index(letter) for letter in (*shared, *summed, *own_right)),
        left_shape=(*stack, product(own_left), product(summed)),
        right_shape=(*stack, product(summed), product(own_right)),
        whole=tuple(sizes[letter] for letter in made),
        order=tuple(made.index(letter) for letter in out),
        shape=tuple(sizes[letter] for letter in out),
        terms=product(summed),
    )
