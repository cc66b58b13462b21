from __future__ import annotations

import numpy as np
import pytest

from tdbg_lab.records import Kind, Mode, StatsRows, TensorKey
from tdbg_lab.run import open_run
from tdbg_lab.stats.reference import summarize
from tdbg_lab.store import RankWriter, create_run
from tdbg_lab.views import Cancelled, call_view, needs_preparing, prepare_view


@pytest.fixture(scope="module")
def moving(tmp_path_factory):
    """The same 90 points of three classes at five steps, drifting apart and turning."""
    rng = np.random.default_rng(0)
    folder = create_run(tmp_path_factory.mktemp("runs") / "moving")
    writer = RankWriter(folder.path)
    labels = np.repeat([0, 1, 2], 30)
    centres, noise = rng.normal(0, 1, (3, 6)), rng.normal(0, 0.3, (90, 6))
    for step in range(0, 50, 10):
        angle = step / 50
        turn = np.eye(6)
        turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        z = (centres[labels] * (1 + step / 20) + noise) @ turn
        if step == 40:
            z[7, 2] = np.nan
        block = summarize([z])
        writer.append(StatsRows(step, Mode.TRAIN, 0, 1 + step, (TensorKey("latent", Kind.CUSTOM),), block))
        writer.write_raw(step, {"latent": z.astype(np.float32), "latent/labels": labels}, mode=Mode.TRAIN)
    writer.close()
    return open_run(folder.path)


def _points(figure):
    clouds = [trace for trace in figure.data if trace.mode == "markers"]
    rows = np.concatenate([trace.customdata for trace in clouds])
    places = np.column_stack([np.concatenate([trace[axis] for trace in clouds]) for axis in ("x", "y")])
    return dict(zip(rows.tolist(), places.astype(float), strict=True))


def test_latent_draws_one_trace_for_each_label_and_every_row_once(moving):
    figure = call_view(moving, "latent", {"step": 0})
    assert [trace.name for trace in figure.data] == ["0", "1", "2", "labels"]
    assert list(figure.data[-1].text) == ["0", "1", "2"]
    assert sorted(_points(figure)) == list(range(90))


def test_latent_pca_keeps_points_in_place_from_step_to_step(moving):
    first, later = (_points(call_view(moving, "latent", {"step": step})) for step in (0, 30))
    a, b = np.array([first[i] for i in range(90)]), np.array([later[i] for i in range(90)])
    assert np.corrcoef(a[:, 0], b[:, 0])[0, 1] > 0.9
    assert np.corrcoef(a[:, 1], b[:, 1])[0, 1] > 0.9


def test_latent_leaves_rows_with_nan_out_and_says_so(moving):
    figure = call_view(moving, "latent", {"step": 40})
    assert 7 not in _points(figure)
    assert "1 row with NaN or infinities left out" in figure.layout.meta["tdbg"]["caption"]


def test_latent_draws_the_same_rows_when_there_are_too_many(moving):
    rows = [
        sorted(_points(call_view(moving, "latent", {"step": step, "max_points": 20}))) for step in (0, 20)
    ]
    assert len(rows[0]) == 20
    assert rows[0] == rows[1]


def test_latent_tsne_shows_pca_until_it_is_prepared(moving):
    assert needs_preparing(moving, "latent", {"method": "tsne"})
    assert not needs_preparing(moving, "latent", {"method": "pca"})
    figure = call_view(moving, "latent", {"method": "tsne"}, wait=False)
    assert figure.layout.meta["tdbg"]["pending"]
    assert "PCA" in figure.layout.annotations[0].text


def test_latent_tsne_warm_start_keeps_points_in_place(moving):
    params = {"method": "tsne", "step": 30}
    said = []
    data = prepare_view(moving.path, "latent", params, lambda share, text: said.append((share, text)))
    assert list(data.coordinates) == [0, 10, 20, 30]
    assert [share for share, _ in said] == sorted(share for share, _ in said)
    assert said[-1][0] == 1.0
    places = [_points(call_view(moving, "latent", {**params, "step": s}, prepared=data)) for s in (20, 30)]
    a, b = (np.array([place[i] for i in range(90)]) for place in places)
    extent = np.ptp(b, axis=0).max()
    assert np.median(np.linalg.norm(a - b, axis=1)) < 0.15 * extent


def test_latent_tsne_goes_on_from_earlier_data(moving):
    params = {"method": "tsne", "links": 2}
    before = prepare_view(moving.path, "latent", {**params, "step": 10})
    after = prepare_view(moving.path, "latent", {**params, "step": 20}, previous=before)
    np.testing.assert_array_equal(after.coordinates[10], before.coordinates[10])
    assert 20 in after.coordinates
    assert 20 not in before.coordinates
    again = prepare_view(moving.path, "latent", {**params, "step": 20}, previous=after)
    np.testing.assert_array_equal(again.coordinates[20], after.coordinates[20])


def test_latent_tsne_can_be_pickled_and_is_deterministic(moving):
    import pickle

    params = {"method": "tsne", "step": 0}
    first, second = (prepare_view(moving.path, "latent", params) for _ in range(2))
    np.testing.assert_array_equal(first.coordinates[0], pickle.loads(pickle.dumps(second)).coordinates[0])


def test_latent_tsne_stops_when_cancelled(moving):
    asked = []

    def cancelled():
        asked.append(1)
        return len(asked) > 3

    with pytest.raises(Cancelled):
        prepare_view(moving.path, "latent", {"method": "tsne"}, cancelled=cancelled)
    assert len(asked) < 10


def test_latent_writes_nothing_into_the_run(moving):
    before = sorted((path.name, path.stat().st_mtime_ns) for path in moving.path.rglob("*"))
    call_view(moving, "latent", {"method": "tsne", "step": 0})
    assert sorted((path.name, path.stat().st_mtime_ns) for path in moving.path.rglob("*")) == before


def test_embeddings_of_a_run_that_is_followed_for_long_do_not_pile_up():
    from tdbg_lab.views.latent import _MOST_STEPS, Embeddings, _bounded

    places = {step: np.zeros((1, 2), dtype=np.float32) for step in range(500)}
    rows = {step: np.zeros(1, dtype=np.int64) for step in range(500)}
    kept = _bounded(Embeddings(places, rows), 499)
    assert list(kept.coordinates) == list(range(500 - _MOST_STEPS, 500))
    assert list(kept.rows) == list(kept.coordinates)


def test_latent_takes_no_single_column_by_itself(tmp_path):
    folder = create_run(tmp_path / "columns")
    writer = RankWriter(folder.path)
    column = np.arange(20.0)
    key = TensorKey("predictions", Kind.CUSTOM, shape=(20,))
    writer.append(StatsRows(0, Mode.TRAIN, 0, 1, (key,), summarize([column])))
    writer.write_raw(0, {"predictions": column}, mode=Mode.TRAIN)
    writer.close()
    run = open_run(folder.path)
    assert not call_view(run, "latent").data
    assert call_view(run, "latent", {"tensor": "predictions"}).data
