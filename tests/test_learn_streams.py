"""Dictionary learning on streams of batches."""

import numpy as np
import pytest

import grassmann_sc as core
from grassmann_sc import learn
from strategies import LOOSE, clusters, error, explicit_cost, hat

SOME = core.random_subspaces(30, 70, 2, rng=3)
SMALL = clusters(np.random.default_rng(1), 24, 6, 2, 4)


def test_a_stream_learns_as_well_as_a_batch_and_remembers_in_bounded_space():
    rng = np.random.default_rng(0)
    centres = core.random_subspaces(8, 20, 2, rng=rng)

    def draw(n):
        return core.orthonormalize(
            centres[rng.integers(0, 8, n)] + 0.1 * rng.standard_normal((n, 20, 2))
        )

    held_out = draw(200)

    def cost(atoms):
        return explicit_cost(held_out, atoms, core.gsc(held_out, atoms, 0.2), 0.2)

    stream = learn.OnlineGDL(6, 0.2, rng=0)
    sizes = []
    for _ in range(20):
        stream.partial_fit(draw(64))
        sizes.append(sum(np.asarray(value).nbytes for value in vars(stream).values()))
    assert cost(stream.atoms) <= 1.05 * cost(learn.gdl(draw(600), 6, 0.2, rng=0).atoms)
    assert stream.n_batches == 20 and len(set(sizes[1:])) == 1


def test_statistics_of_a_stream_are_exact_where_the_rank_allows():
    """Without forgetting and at full rank, the update after two batches is that of both at once."""
    D = SMALL[:3]
    first = SMALL[4:12]
    second = SMALL[12:]
    stream = learn.OnlineGDL(3, 0.2, init=D, forgetting=0, rank=6).partial_fit(first)
    middle = stream.atoms
    stream.partial_fit(second)
    codes = np.concatenate([core.gsc(first, D, 0.2), core.gsc(second, middle, 0.2)])
    assert error(hat(middle), hat(learn.update_atoms(first, D, codes[:8]))) <= LOOSE
    assert error(hat(stream.atoms), hat(learn.update_atoms(SMALL[4:], middle, codes))) <= LOOSE


def test_fit_takes_memory_maps_and_iterables(tmp_path):
    np.save(tmp_path / "X.npy", SMALL)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    fitted = learn.OnlineGDL(4, 0.2, rng=0).fit(mapped, batch_size=5, n_epochs=2)
    assert fitted.n_batches == 10 and fitted.atoms.shape == (4, 6, 2)
    assert (
        learn.OnlineGDL(4, 0.2, rng=0).fit([SMALL[:2], SMALL[2:]], n_epochs=2).n_batches == 3
    )  # two samples wait for the rest
    with pytest.raises(ValueError, match="n_epochs must be 1, got 2"):
        learn.OnlineGDL(4, 0.2).fit(iter([SMALL]), n_epochs=2)
    with pytest.raises(ValueError, match=r"d and p of the atoms, \(6, 2\), got \(70, 2\)"):
        fitted.partial_fit(SOME)
