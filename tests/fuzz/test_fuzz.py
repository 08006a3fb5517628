"""The fuzz sees planted faults, names the case, and fails where something was never reached."""

from collections import Counter

import numpy as np
import pytest
from fuzz import checks, estimate_cases, history_cases, pure_cases
from fuzz.run import KINDS, Report, expected, main, run_case, told

from qsim_ozaki.ir import TURNS_TO_Z
from qsim_ozaki.lowering import unitary

SEED = 20261130
WITHOUT_FAULT = 4  # of these cases of a kind none fails


def first_failure(kind, most):
    """The message of the first of ``most`` cases of ``kind`` that fails, or None."""
    messages = (run_case(SEED, number, (kind,))[1] for number in range(most))
    return next((message for message in messages if message is not None), None)


@pytest.mark.parametrize("kind", [pure_cases.amplitudes, pure_cases.samples])
def test_a_wrong_control_state_of_one_gate_is_seen(monkeypatch, kind):
    right = unitary.row_op

    def wrong(row, params, qubits, ctrl_state=None):
        if row.name == "mcx" and ctrl_state is not None:
            ctrl_state ^= 1
        return right(row, params, qubits, ctrl_state)

    assert first_failure(kind, WITHOUT_FAULT) is None
    monkeypatch.setattr(unitary, "row_op", wrong)
    assert "AssertionError" in first_failure(kind, 100)


def test_a_wrong_sign_of_sampled_estimates_is_seen(monkeypatch):
    assert first_failure(estimate_cases.estimates, WITHOUT_FAULT) is None
    assert first_failure(history_cases.mixed_estimates, WITHOUT_FAULT) is None
    monkeypatch.setitem(TURNS_TO_Z, "Y", ("s", "h"))
    assert " due" in first_failure(estimate_cases.estimates, 50)


def test_a_wrong_sign_of_exact_estimates_is_seen(monkeypatch):
    right = estimate_cases.EstimatorV2._estimate

    def wrong(estimator, *arguments):
        evs, stds, shots = right(estimator, *arguments)
        return -evs, stds, shots

    monkeypatch.setattr(estimate_cases.EstimatorV2, "_estimate", wrong)
    assert "exact estimates" in first_failure(estimate_cases.estimates, 10)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_passes_and_a_case_is_the_same_again(kind):
    first, failure = run_case(SEED, 1, (kind,))
    assert failure is None
    assert sum(count for name, count in first.tally.items() if name.startswith("check ")) > 0
    again, _ = run_case(SEED, 1, (kind,))
    assert again.story == first.story
    assert again.tally == first.tally


def test_a_run_that_misses_anything_fails_and_says_so():
    tally = Counter(dict.fromkeys(expected(), 1))
    assert told(SEED, Report(tally))[1]
    for missing in ("gate rzx", "step hadamard", "check derivatives"):
        lines, well = told(SEED, Report(tally - Counter([missing])))
        assert not well
        assert f"FAILED: never reached: {missing}" in lines


def test_a_failure_is_reported_with_the_way_to_run_it_again():
    lines, well = told(SEED, Report(Counter(expected()), [(17, "off by 1")]))
    assert not well
    assert f"FAILED case 17 of seed {SEED}: off by 1" in lines
    assert f"again: .ci/fuzz PYTHON 0 {SEED} 17" in lines


def test_one_case_alone_by_its_number(monkeypatch, capsys):
    assert main(["0", str(SEED), "0"]) == 0
    assert "case 0 passes" in capsys.readouterr().out
    monkeypatch.setattr(checks, "tolerance", lambda *_: -1.0)
    assert main(["0", str(SEED), "0"]) == 1
    assert "off by" in capsys.readouterr().out


@pytest.mark.parametrize("shots", [50, 5000])
def test_samples_are_told_from_those_of_another_distribution(rng, shots):
    probabilities = dict(enumerate([0.5, 0.25, 0.25, 0.0]))
    draws = rng.choice(4, shots, p=list(probabilities.values()))
    counts = {int(value): int(count) for value, count in zip(*np.unique(draws, return_counts=True), strict=True)}
    checks.follow(counts, probabilities, 2, rng)
    with pytest.raises(AssertionError, match=r"outcome 11: 1 of"):
        checks.follow(counts | {3: 1}, probabilities, 2, rng)
    exchanged = {0: counts[1], 1: counts[0] + 4 * shots, 2: counts[2]}
    with pytest.raises(AssertionError, match=r"due"):
        checks.follow(exchanged, probabilities, 2, rng)
    checks.near_mean(counts[0] / shots, 0.5, 1, shots, "a share")
    with pytest.raises(AssertionError, match="a share"):
        checks.near_mean(1.2, 0.5, 0.5, shots, "a share")


def test_the_rate_of_false_alarms_of_a_count():
    """Heads of a fair coin tossed 100 times."""
    allowed = [count for count in range(101) if checks.may_count(count, 100, 0.5, 1e-9, 0.0)]
    assert allowed == list(range(20, 81))  # P(count <= 19) is 1.4e-10, P(count <= 20) 5.6e-10: each side has 5e-10
