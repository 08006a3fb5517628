"""What a worker process does in the tests of pools: a module of its own, which a spawned process can import."""

from support.bell import bell

from qsim_ozaki import OzakiBackend


def bell_counts(seed):
    """Counts of a Bell pair under ``seed``."""
    return OzakiBackend(seed_simulator=seed).run(bell()).result().get_counts()
