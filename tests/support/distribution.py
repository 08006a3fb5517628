"""Whether counts follow a distribution; imports nothing of the package."""

from scipy.stats import chi2

SIGNIFICANCE = 1e-6  # with fixed seeds a test that passes once passes always; this only says how strange a pass may be


def assert_follows(counts, probabilities):
    """Chi-square of ``counts`` against ``probabilities`` (outcome: probability), rare outcomes taken together."""
    shots = sum(counts.values())
    impossible = {key: count for key, count in counts.items() if probabilities.get(key, 0) < 1e-12}
    assert not impossible, f"impossible outcomes {impossible}"
    cells, rare = [], [0.0, 0.0]
    for key, probability in probabilities.items():
        cell = [counts.get(key, 0), shots * probability]
        if cell[1] >= 5:
            cells.append(cell)
        else:
            rare = [rare[0] + cell[0], rare[1] + cell[1]]
    if rare[1] > 0:
        cells.append(rare if rare[1] >= 5 else [rare[0] + cells[0][0], rare[1] + cells.pop(0)[1]])
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in cells)
    limit = chi2.ppf(1 - SIGNIFICANCE, max(1, len(cells) - 1))
    assert statistic < limit, f"chi-square {statistic:.1f} over {limit:.1f}: {counts} against {probabilities}"
