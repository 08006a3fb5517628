"""Native primitives: `EstimatorV2`, exact or sampled, and `SamplerV2`.

In: pubs of Qiskit's primitives. Out: jobs whose results are `PrimitiveResult`s. They may only run on an `OzakiBackend`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qiskit.primitives import BaseEstimatorV2, BasePrimitiveJob, BaseSamplerV2, PrimitiveResult, PubResult
from qiskit.primitives.containers import BitArray, DataBin, EstimatorPubLike, SamplerPubLike, SamplerPubResult
from qiskit.primitives.containers.estimator_pub import EstimatorPub
from qiskit.primitives.containers.sampler_pub import SamplerPub
from qiskit.providers import JobStatus
from qiskit.result.models import ExperimentResultData

from qsim_ozaki.errors import MixedStateError, OptionError
from qsim_ozaki.estimation import Estimation, estimate_pub
from qsim_ozaki.provider.averages import average_pub, sample_pub
from qsim_ozaki.provider.backend import OzakiBackend
from qsim_ozaki.provider.job import OzakiJob
from qsim_ozaki.provider.options import checked
from qsim_ozaki.provider.result import DrawnData
from qsim_ozaki.runtime import check_seed, fresh_seed

SmallBits = NDArray[np.uint8]


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
        seed: of the samples, None for a fresh one; each row of a run has its own random stream.

    Example:
        >>> EstimatorV2().run([(circuit, SparsePauliOp("ZZ"), angles)]).result()[0].data.evs
    """

    def __init__(
        self, backend: OzakiBackend | None = None, *, default_precision: float = 0.0, seed: int | None = None
    ) -> None:
        self._backend = _checked_backend(backend)
        self._default_precision = _checked_precision(default_precision)
        self._seed = check_seed(seed)

    def run(self, pubs: Iterable[EstimatorPubLike], *, precision: float | None = None) -> OzakiPrimitiveJob:
        """Starts a job.

        Args:
            pubs: ``(circuit, observables[, parameter values[, precision]])`` each.
            precision: for pubs without one.

        Raises:
            OptionError: a precision is negative.
        """
        default = self._default_precision if precision is None else precision
        coerced = [EstimatorPub.coerce(pub, default) for pub in pubs]
        for pub in coerced:
            _checked_precision(pub.precision)

        def work(check: Callable[[], None], _: str) -> PrimitiveResult[PubResult]:
            seed, options = _seed_of(self._seed, self._backend), self._backend.merged_options({})
            engine, results, first = self._backend.engine(options)[0], [], 0
            for pub in coerced:
                setting = Estimation(engine, options, seed, first, check)
                try:
                    evs, stds, shots = estimate_pub(pub, setting)
                except MixedStateError:
                    if pub.precision:
                        evs, stds, shots = sample_pub(pub, self._backend, (seed, first), check)
                    else:
                        evs, shots = average_pub(pub, self._backend, check), 0
                        stds = np.zeros_like(evs)
                first += max(1, pub.parameter_values.size)
                metadata = {"target_precision": pub.precision, "shots": shots}
                metadata["circuit_metadata"] = pub.circuit.metadata
                results.append(PubResult(DataBin(evs=evs, stds=stds, shape=evs.shape), metadata))
            return PrimitiveResult(results, metadata={"version": 2, "seed": seed})

        return _submitted(self._backend, work)


class SamplerV2(BaseSamplerV2):  # type: ignore[misc]
    """Samples of the classical registers that circuits write.

    Each register is a field of the data; registers may share bits. A bit outside all registers is a register by itself,
    named ``clbit`` and its index.

    Args:
        backend: its engine and options are used; None for a new `OzakiBackend`.
        default_shots: of pubs without shots, if `run` has none either.
        seed: of the samples, None for a fresh one; each row of a run has its own random stream.

    Example:
        >>> SamplerV2(seed=7).run([(circuit, angles)], shots=1000).result()[0].data.meas.get_counts()
    """

    def __init__(
        self, backend: OzakiBackend | None = None, *, default_shots: int = 1024, seed: int | None = None
    ) -> None:
        self._backend = _checked_backend(backend)
        self._default_shots = checked({"shots": default_shots})["shots"]
        self._seed = check_seed(seed)

    def run(self, pubs: Iterable[SamplerPubLike], *, shots: int | None = None) -> OzakiPrimitiveJob:
        """Starts a job.

        Args:
            pubs: ``(circuit[, parameter values[, shots]])`` each.
            shots: for pubs without their own.
        """
        default = self._default_shots if shots is None else shots
        coerced = [SamplerPub.coerce(pub, default) for pub in pubs]

        def work(check: Callable[[], None], _: str) -> PrimitiveResult[SamplerPubResult]:
            seed, results, first = _seed_of(self._seed, self._backend), [], 0
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
        pieces: dict[str, list[SmallBits]] = {}
        sizes: dict[str, int] = {}
        for result in self._backend.results([circuit], binds, options, first=stream[1], check=check):
            registers = result.header["creg_sizes"]
            bits = _bits(result.data, pub.shots, sum(size for _, size in registers))
            start = 0
            for name, size in registers:
                sizes[name] = size
                pieces.setdefault(name, []).append(_packed(bits[:, start : start + size]))
                start += size
        arrays = {
            name: BitArray(np.stack(parts).reshape(*shape, pub.shots, -1), sizes[name])
            for name, parts in pieces.items()
            if sizes[name]
        }
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


def _seed_of(seed: int | None, backend: OzakiBackend) -> int:
    if seed is None:
        seed = backend.options.seed_simulator
    return fresh_seed() if seed is None else int(seed)


def _checked_backend(backend: OzakiBackend | None) -> OzakiBackend:
    if backend is not None and not isinstance(backend, OzakiBackend):
        raise OptionError(
            f"backend of type {type(backend).__name__} is not allowed. Use an OzakiBackend; for another backend, "
            f"Qiskit's BackendSamplerV2 and BackendEstimatorV2."
        )
    return OzakiBackend() if backend is None else backend


def _checked_precision(precision: float) -> float:
    if not isinstance(precision, Real) or not 0 <= precision < math.inf:
        raise OptionError(
            f"precision={precision!r} is not allowed. Use 0 for exact values, or a standard error above it."
        )
    return precision


def _submitted(backend: OzakiBackend, work: Callable[[Callable[[], None], str], Any]) -> OzakiPrimitiveJob:
    job = OzakiJob(backend, work, backend.engine(backend.merged_options({}))[1])
    job.submit()
    return OzakiPrimitiveJob(job)
