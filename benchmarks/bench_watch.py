"""`make bench-watch`: what watching a training costs a step, with one step of 50 watched.

A small transformer and a small CNN on the CPU, in rounds that take turns: 50 steps without `watch`, and 50 with it.
`make bench-watch ARGS=--store` keeps the figures for docs/watch-training.md. Run as `python -m benchmarks.bench_watch`.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

from benchmarks.shown import Row
from benchmarks.stored import Rounds, start, store

NAME = "bench_watch"
"""Of the stored figures."""
STEPS = 50
GOAL = 0.10
"""Of a step's time: what a training team would leave switched on."""
TRANSFORMER, CNN = "a step of a small transformer, share added", "a step of a small CNN, share added"


def transformer() -> tuple[Any, Callable[[], Any]]:
    """Two layers of width 128 on 16 sequences of 64 tokens."""
    import torch  # noqa: PLC0415 - an extra

    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0)
    model = torch.nn.Sequential(torch.nn.Embedding(1000, 128), torch.nn.TransformerEncoder(layer, 2))
    tokens = torch.randint(0, 1000, (16, 64))
    return model, lambda: model(tokens).square().mean()


def cnn() -> tuple[Any, Callable[[], Any]]:
    """Two stages of two convolutions with batch norm, as VGG has them, and max pooling on 16 images of 3 x 32 x 32."""
    import torch  # noqa: PLC0415 - an extra

    def block(channels: int, out: int) -> list[Any]:
        return [torch.nn.Conv2d(channels, out, 3, padding=1), torch.nn.BatchNorm2d(out), torch.nn.ReLU()]

    pool = torch.nn.MaxPool2d
    first, second = (*block(3, 32), *block(32, 32), pool(2)), (*block(32, 64), *block(64, 64), pool(2))
    model = torch.nn.Sequential(*first, *second, torch.nn.Flatten())
    images = torch.randn(16, 3, 32, 32)
    return model, lambda: model(images).square().mean()


def added(make: Callable[[], tuple[Any, Callable[[], Any]]], rounds: int) -> Iterator[float]:
    """By round, the share of a step's time that watching adds."""
    import torch  # noqa: PLC0415 - an extra

    from aclnn_cts.training.watch import watch  # noqa: PLC0415 - takes torch where it is used

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, loss = make()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    watched = watch(sample=STEPS, model=model)

    def seconds(around: contextlib.AbstractContextManager[Any] | None) -> float:
        began = time.perf_counter()
        for _ in range(STEPS):
            value = loss()
            with around or contextlib.nullcontext():
                value.backward()
            optimizer.step()
            optimizer.zero_grad()
        return time.perf_counter() - began

    seconds(watched)
    for _ in range(rounds):
        plain = seconds(None)
        yield seconds(watched) / plain - 1.0
    watched.close()


def shown(rounds: Rounds) -> Iterator[Row]:
    """Rows for the page."""
    for name in (TRANSFORMER, CNN):
        if name in rounds:
            share = median(rounds[name])
            yield Row(what=name, figure=f"{share:.1%}", goal=f"at most {GOAL:.0%}", missed=share > GOAL)


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_watch", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/watch-training.md")
    options = parser.parse_args(arguments)
    started = start()
    found = {
        TRANSFORMER: tuple(added(transformer, options.rounds)),
        CNN: tuple(added(cnn, options.rounds)),
    }
    for name, values in found.items():
        print(f"{name}: {median(values):.1%} (goal: {GOAL:.0%}); {', '.join(f'{value:.1%}' for value in values)}")
    if options.store:
        store(NAME, found, command="make bench-watch ARGS=--store", started=started, needed=(TRANSFORMER, CNN))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
