"""Compiled sets as 64-bit words, pseudorandom numbers, and the choice of a chunk from a set."""

from typing import Any

import numpy as np

from ...core.kernel import kernel

#: How a chunk is chosen: any, the one that the fewest ranks have or are about to get, or that among the first 64.
ANY, RAREST, RARE_OF_64 = 0, 1, 2

#: Zero of 64 bits: where a compiled function hands on a literal 0 and later a number, numba compiles for both.
ZERO: Any = np.int64(0)

_FEW = 64  #: candidates that ``RARE_OF_64`` looks at


@kernel
def low_bit(word: Any) -> int:
    """Return the position of the lowest set bit of a nonzero word."""
    x = np.uint64(word)
    x = (x & (~x + np.uint64(1))) - np.uint64(1)  # the bits below it; counting them compiles to one instruction
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    count: Any = np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))
    return count  # type: ignore[no-any-return]


@kernel
def has(words: Any, chunk: int) -> bool:
    """Check if a set contains a chunk."""
    return bool((words[chunk >> 6] >> np.uint64(chunk & 63)) & np.uint64(1))


@kernel
def put(words: Any, chunk: int) -> None:
    """Add a chunk to a set."""
    words[chunk >> 6] |= np.uint64(1) << np.uint64(chunk & 63)


@kernel
def drop(words: Any, chunk: int) -> None:
    """Remove a chunk from a set."""
    words[chunk >> 6] &= ~(np.uint64(1) << np.uint64(chunk & 63))


@kernel
def draw(state: Any, below: int) -> int:
    """Draw a number from 0 to ``below - 1`` by a 64-bit xorshift generator."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    signed: Any = np.int64((x >> np.uint64(11)) % np.uint64(below))
    return signed  # type: ignore[no-any-return]


@kernel
def seed_state(seed: int) -> Any:
    """Return the state of a generator; nearby seeds give unrelated states."""
    state = np.empty(1, np.uint64)
    x = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xD1B54A32D192ED03)
    x ^= x >> np.uint64(29)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(32)
    state[0] = x | np.uint64(1)
    return state


@kernel
def shuffle(items: Any, count: int, state: Any) -> None:
    """Shuffle the first ``count`` items."""
    for index in range(count - 1, 0, -1):
        other = draw(state, index + 1)
        items[index], items[other] = items[other], items[index]


@kernel
def choose(words: Any, copies: Any, how: int, state: Any) -> int:
    """Choose a chunk of a set, by ``how`` and the number of ``copies`` of each; -1 of an empty one."""
    size = len(words)
    first, turn = draw(state, size), draw(state, 64)
    down, up = np.uint64(turn), np.uint64(64 - turn)
    best, fewest, count = -1, 2**62, 0
    for step in range(size):
        index = first + step
        if index >= size:
            index -= size
        word = words[index]
        if word == np.uint64(0):
            continue
        # The word is turned, so that its lowest bit is a random one.
        if turn != 0:
            word = (word >> down) | (word << up)
        while word != np.uint64(0):
            bit = low_bit(word)
            chunk = (index << 6) + ((bit + turn) & 63)
            if how == ANY:
                return chunk
            if copies[chunk] < fewest:
                best, fewest = chunk, copies[chunk]
            count += 1
            if how == RARE_OF_64 and count >= _FEW:
                return best
            word &= word - np.uint64(1)
    return best
