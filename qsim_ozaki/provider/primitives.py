"""Native primitives: `EstimatorV2`, exact or sampled, and `SamplerV2`.

In: pubs of Qiskit's primitives. Out: jobs whose results are `PrimitiveResult`s. They may only run on an `OzakiBackend`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from qiskit.primitives import BaseEstimatorV2, BasePrimitiveJob, BaseSamplerV2, PrimitiveResult, PubResult
from qiskit.primitives.containers import BitArray, DataBin, EstimatorPubLike, SamplerPubLike, SamplerPubResult
from qiskit.primitives.containers.estimator_pub import EstimatorPub
from qiskit.primitives.containers.sampler_pub import SamplerPub
from qiskit.providers import JobStatus
from qiskit.result.models import ExperimentResultData

from qsim_ozaki.errors import MixedStateError, OptionError
from qsim_ozaki.estimation import Estimation, estimate_pub, shots_of
from qsim_ozaki.ir import RealArray
from qsim_ozaki.provider.averages import average_pub, sample_pub
from qsim_ozaki.provider.backend import OzakiBackend
from qsim_ozaki.provider.job import OzakiJob
from qsim_ozaki.provider.options import MAX_SHOTS, checked
from qsim_ozaki.provider.prepare import register_sizes
from qsim_ozaki.provider.pub_checks import check_estimator_pub, check_sampler_pub, check_values, checked_pubs
from qsim_ozaki.provider.result import DrawnData
from qsim_ozaki.runtime import check_seed, fresh_seed

SmallBits = NDArray[np.uint8]
Seed: TypeAlias = int | np.random.Generator | None

# Qiskit's own words
NO_REGISTERS = (
    "One of your circuits has no output classical registers and so the result will be empty. Did you mean to add "
    "measurement instructions?"
)


class OzakiPrimitiveJob(BasePrimitiveJob):  # type: ignore[misc]
    """A run of a primitive: an `OzakiJob` with the methods of Qiskit's primitive jobs.

    Args:
        job: a job that was submitted.
    """

    def __init__(self, job: OzakiJob) -> None:
        super().__init__(job.job_id())
        self._job = job

    def result(self, timeout: float | None = None) -> PrimitiveResult[Any]:
        """Waits for the result and returns it; see `OzakiJob.result`.

        Args:
            timeout: seconds to wait, None for as long as it takes.
        """
        return self._job.result(timeout)

    def status(self) -> JobStatus:
        """Returns QUEUED, RUNNING, and in the end DONE, ERROR or CANCELLED."""
        return self._job.status()

    def cancel(self) -> bool:
        """Cancels the job; returns whether it had not ended before."""
        return self._job.cancel()

    def done(self) -> bool:
        """Returns whether the job ended with a result."""
        return bool(self._job.done())

    def running(self) -> bool:
        """Returns whether the job runs now."""
        return bool(self._job.running())

    def cancelled(self) -> bool:
        """Returns whether the job was cancelled."""
        return bool(self._job.cancelled())

    def in_final_state(self) -> bool:
        """Returns whether the job has ended."""
        return bool(self._job.in_final_state())


class EstimatorV2(BaseEstimatorV2):  # type: ignore[misc]
    """Expectation values of observables in the final states of circuits.

    All observables of one row of parameters are evaluated on one state. With precision 0 values are exact and ``stds``
    are 0. Otherwise each basis that the observables need is measured in ``ceil(1 / precision**2)`` shots: values
    scatter as those of a device without noise would, and ``stds`` are their standard errors. Of a circuit that
    measures, resets or branches inside, values are means over all of its histories, and sampled shots each follow one.

    Args:
        backend: its engine and options are used; None for a new `OzakiBackend`.
        default_precision: of pubs without a precision, if `run` has none either.
        seed: of the samples: an integer, of which each run draws the same, or a NumPy Generator, which gives each run
            another; None for the backend's ``seed_simulator``. Each row of a run has its own random stream.

    Example:
        >>> EstimatorV2().run([(circuit, SparsePauliOp("ZZ"), angles)]).result()[0].data.evs
    """

    def __init__(
        self, backend: OzakiBackend | None = None, *, default_precision: float = 0.0, seed: Seed = None
    ) -> None:
        self._backend = _checked_backend(backend)
        self._default_precision = _checked_precision(default_precision, "default_precision")
        self._seed = _checked_seed(seed)

    @property
    def backend(self) -> OzakiBackend:
        """The backend whose engine and options are used."""
        return self._backend

    @property
    def default_precision(self) -> float:
        """Precision of pubs without one, if `run` has none either."""
        return self._default_precision

    @property
    def seed(self) -> Seed:
        """The seed, as it was given."""
        return self._seed

    def run(self, pubs: Iterable[EstimatorPubLike], *, precision: float | None = None) -> OzakiPrimitiveJob:
        """Starts a job.

        Args:
            pubs: ``(circuit, observables[, parameter values[, precision]])`` each.
            precision: for pubs without one.

        Raises:
            OptionError: a precision is negative or not finite, or a parameter's value is not a finite real number.
            LoweringError: a factor of an observable is not finite.
        """
        default = self._default_precision if precision is None else _checked_precision(precision)
        coerced = []
        for pub in checked_pubs(pubs):
            check_estimator_pub(pub)
            coerced.append(EstimatorPub.coerce(pub, default))
            _checked_precision(coerced[-1].precision)
            check_values(coerced[-1])
        seed, options = _seed_of(self._seed, self._backend), self._backend.merged_options({})

        def work(check: Callable[[], None], _: str) -> PrimitiveResult[PubResult]:
            engine, results, first = self._backend.engine(options)[0], [], 0
            for pub in coerced:
                evs, stds, shots = self._estimate(pub, Estimation(engine, options, seed, first, check))
                first += max(1, pub.parameter_values.size)
                metadata = {"target_precision": pub.precision, "shots": shots}
                metadata["circuit_metadata"] = pub.circuit.metadata
                results.append(PubResult(DataBin(evs=evs, stds=stds, shape=evs.shape), metadata))
            return PrimitiveResult(results, metadata={"version": 2, "seed": seed})

        return _submitted(self._backend, work)

    def _estimate(self, pub: EstimatorPub, setting: Estimation) -> tuple[RealArray, RealArray, int]:
        """Returns values, standard errors, and the shots of each basis."""
        if not math.prod(pub.shape):
            return np.zeros(pub.shape), np.zeros(pub.shape), shots_of(pub.precision)
        try:
            return estimate_pub(pub, setting)
        except MixedStateError:
            if pub.precision:
                return sample_pub(pub, self._backend, (setting.seed, setting.first), setting.check)
            evs = average_pub(pub, self._backend, setting.check)
            return evs, np.zeros_like(evs), 0


class SamplerV2(BaseSamplerV2):  # type: ignore[misc]
    """Samples of the classical registers that circuits write.

    Each register is a field of the data; registers may share bits. A bit outside all registers is a register by itself,
    named ``clbit`` and its index.

    Args:
        backend: its engine and options are used; None for a new `OzakiBackend`.
        default_shots: of pubs without shots, if `run` has none either; None for the backend's ``shots``.
        seed: as of `EstimatorV2`.

    Example:
        >>> SamplerV2(seed=7).run([(circuit, angles)], shots=1000).result()[0].data.meas.get_counts()
    """

    def __init__(
        self, backend: OzakiBackend | None = None, *, default_shots: int | None = None, seed: Seed = None
    ) -> None:
        self._backend = _checked_backend(backend)
        self._default_shots = _checked_default_shots(default_shots)
        self._seed = _checked_seed(seed)

    @property
    def backend(self) -> OzakiBackend:
        """The backend whose engine and options are used."""
        return self._backend

    @property
    def default_shots(self) -> int | None:
        """Shots of pubs without their own, if `run` has none either; None if the backend has none."""
        shots: int | None = self._backend.options.shots if self._default_shots is None else self._default_shots
        return shots

    @property
    def seed(self) -> Seed:
        """The seed, as it was given."""
        return self._seed

    def run(self, pubs: Iterable[SamplerPubLike], *, shots: int | None = None) -> OzakiPrimitiveJob:
        """Starts a job.

        Args:
            pubs: ``(circuit[, parameter values[, shots]])`` each.
            shots: for pubs without their own.

        Raises:
            OptionError: a pub has no shots, or a parameter's value is not a finite real number.
        """
        default = self.default_shots if shots is None else shots
        coerced = []
        for pub in checked_pubs(pubs):
            check_sampler_pub(pub)
            coerced.append(SamplerPub.coerce(pub, default))
            check_values(coerced[-1])
            if coerced[-1].shots is None:
                raise OptionError(
                    "shots=None, the backend's option, asks for exact probabilities, but a sampler draws samples. Give "
                    "run() or the pub a number of shots."
                )
        if any(not pub.circuit.num_clbits and not pub.circuit.cregs for pub in coerced):
            warnings.warn(NO_REGISTERS, stacklevel=2)
        seed = _seed_of(self._seed, self._backend)

        def work(check: Callable[[], None], _: str) -> PrimitiveResult[SamplerPubResult]:
            results, first = [], 0
            for pub in coerced:
                check()
                results.append(self._sample(pub, (seed, first), check))
                first += max(1, pub.parameter_values.size)
            return PrimitiveResult(results, metadata={"version": 2, "seed": seed})

        return _submitted(self._backend, work)

    def _sample(self, pub: SamplerPub, stream: tuple[int, int], check: Callable[[], None]) -> SamplerPubResult:
        circuit, bindings, shape = pub.circuit, pub.parameter_values, pub.parameter_values.shape
        rows = bindings.as_array(circuit.parameters).reshape(bindings.size, circuit.num_parameters)
        options = {"memory": True, "shots": pub.shots, "seed_simulator": stream[0]}
        binds = rows if circuit.num_parameters or shape else None
        results = []
        if bindings.size:
            results = self._backend.results([circuit], binds, options, first=stream[1], check=check)
        registers = register_sizes(circuit)
        width = sum(size for _, size in registers)
        table = [_bits(result.data, pub.shots, width) for result in results]
        arrays: dict[str, BitArray] = {}
        start = 0
        for name, size in registers:
            columns = [_packed(bits[:, start : start + size]) for bits in table]
            packed = np.array(columns, np.uint8).reshape(*shape, pub.shots, -(-size // 8))
            arrays[name] = BitArray(packed, size)
            start += size
        metadata = {"shots": pub.shots, "circuit_metadata": circuit.metadata}
        return SamplerPubResult(DataBin(**arrays, shape=shape), metadata)


def _bits(data: ExperimentResultData, shots: int, width: int) -> SmallBits:
    """Returns bit j of each shot's value in column j, ``(shots, width)``."""
    if isinstance(data, DrawnData):
        return data.drawn.bits(width)
    memory = getattr(data, "memory", None)
    if not memory:  # a circuit that measures nothing
        return np.zeros((shots, width), np.uint8)
    count = -(-width // 8)
    distinct = {value: np.frombuffer(int(value, 16).to_bytes(count, "little"), np.uint8) for value in set(memory)}
    table = np.array([distinct[value] for value in memory])
    return np.unpackbits(table, axis=1, count=width, bitorder="little")


def _packed(bits: SmallBits) -> SmallBits:
    """Packs columns as `BitArray` holds them: big-endian bytes, bit 0 last."""
    return np.packbits(bits, axis=1, bitorder="little")[:, ::-1]


def _seed_of(seed: Seed, backend: OzakiBackend) -> int:
    """Returns the seed of one run."""
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(1 << 63))
    chosen: int | None = backend.options.seed_simulator if seed is None else seed
    return fresh_seed() if chosen is None else chosen


def _checked_seed(seed: object) -> Seed:
    return seed if isinstance(seed, np.random.Generator) else check_seed(seed, "seed")


def _checked_backend(backend: OzakiBackend | None) -> OzakiBackend:
    if backend is not None and not isinstance(backend, OzakiBackend):
        raise OptionError(
            f"backend of type {type(backend).__name__} is not allowed. Use an OzakiBackend; for another backend, "
            f"Qiskit's BackendSamplerV2 and BackendEstimatorV2."
        )
    return OzakiBackend() if backend is None else backend


def _checked_default_shots(shots: Any) -> int | None:
    try:
        chosen: int | None = checked({"shots": shots})["shots"]
    except OptionError:
        raise OptionError(
            f"default_shots={shots!r} is not allowed. Use an integer from 1 to 2**53, or None for the backend's shots."
        ) from None
    return chosen


def _checked_precision(precision: float, name: str = "precision") -> float:
    if not isinstance(precision, Real) or isinstance(precision, bool) or not 0 <= precision < math.inf:
        raise OptionError(f"{name}={precision!r} is not allowed. Use 0 for exact values, or a standard error above it.")
    if 0 < precision < MAX_SHOTS**-0.5:
        raise OptionError(
            f"{name}={precision!r} needs more than 2**53 shots. Use 0 for exact values, or at least "
            f"{1.01 * MAX_SHOTS**-0.5:.2e}."
        )
    return precision


def _submitted(backend: OzakiBackend, work: Callable[[Callable[[], None], str], Any]) -> OzakiPrimitiveJob:
    job = OzakiJob(backend, work, backend.engine(backend.merged_options({}))[1])
    job.submit()
    return OzakiPrimitiveJob(job)
