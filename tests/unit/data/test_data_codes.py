"""Random codes: the alphabet, and that each character is as likely as the next."""

from __future__ import annotations

import itertools
from collections import Counter

from playhall_data.registry import JOIN_CODE_ALPHABET, random_code


def test_the_alphabet_has_31_characters_that_look_different() -> None:
    assert len(set(JOIN_CODE_ALPHABET)) == 31
    assert not set("01OIL") & set(JOIN_CODE_ALPHABET)


def test_a_code_is_as_long_as_asked_for() -> None:
    assert random_code(6, lambda n: bytes(n)) == "222222"


def test_bytes_that_would_favour_some_characters_are_passed_over() -> None:
    bytes_in_turn = itertools.cycle(range(256))
    code = random_code(31 * 8, lambda n: bytes(itertools.islice(bytes_in_turn, n)))
    assert set(Counter(code).values()) == {8}
