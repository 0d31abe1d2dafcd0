"""Whether answers got longer or shorter: the test, and when it is worth a word."""

import numpy as np
import pandas as pd
import pytest

from aftershock.slo.lengths import length_notes, shift
from aftershock.slo.recorded import Recorded

RNG = np.random.default_rng(4)


def test_all_longer_all_shorter_and_all_alike() -> None:
    few, many = np.full(100, 3), np.full(80, 9)
    assert shift(few, many).delta == 1.0 and shift(many, few).delta == -1.0
    assert (shift(few, few).delta, shift(few, few).p) == (0.0, 1.0)
    assert shift(few, many).p < 1e-6


def test_the_delta_counts_pairs() -> None:
    before, after = RNG.poisson(20, 60), RNG.poisson(23, 50)
    pairs = np.sign(after[:, None] - before[None, :])
    assert shift(before, after).delta == pytest.approx(pairs.mean())


def test_without_a_difference_p_is_uniform() -> None:
    low = [shift(RNG.poisson(5, 300), RNG.poisson(5, 200)).p < 0.05 for _ in range(1000)]
    assert 0.03 < np.mean(low) < 0.075


def test_dependent_answers_prove_less() -> None:
    before, after = RNG.poisson(20, 500), RNG.poisson(21, 500)
    assert shift(before, after, design_effect=4.0).p > shift(before, after).p


def test_nothing_is_compared_with_nothing() -> None:
    with pytest.raises(ValueError, match="nothing"):
        shift(np.empty(0, dtype=np.int64), np.array([1]))


def notes(**tokens: np.ndarray) -> list[str]:
    frames = [
        pd.DataFrame({"phase": phase, "seq": range(len(found)), "outcome": "ok", "output_tokens": found})
        for phase, found in tokens.items()
    ]
    return [*length_notes(Recorded(pd.concat(frames)))]


def test_answers_that_were_cut_short_are_told() -> None:
    (note,) = notes(baseline=RNG.poisson(30, 1000), chaos=RNG.poisson(20, 1000), recovery=RNG.poisson(30, 1000))
    assert note.startswith("Answers were shorter in the chaos phase than in the baseline: a mean of ")
    assert "80 % of them" in note and note.endswith(").") and "Cliff's delta -0.8" in note


def test_trifles_chance_and_missing_phases_are_not() -> None:
    assert notes(baseline=RNG.poisson(30, 50_000), chaos=RNG.poisson(30, 50_000) + (RNG.random(50_000) < 0.2)) == []
    assert notes(baseline=RNG.poisson(30, 8), chaos=RNG.poisson(33, 8)) == []
    assert notes(chaos=RNG.poisson(30, 100)) == []
    assert [*length_notes(Recorded(None))] == []


def test_failed_requests_have_no_length() -> None:
    frame = pd.DataFrame({"phase": ["baseline"] * 500 + ["chaos"] * 500, "seq": [*range(500)] * 2})
    frame["outcome"] = ["ok"] * 500 + ["ok", "reset"] * 250
    frame["output_tokens"] = [30] * 500 + [30, 0] * 250
    assert [*length_notes(Recorded(frame))] == []
