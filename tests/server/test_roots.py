from __future__ import annotations

import pytest

from tdbg_lab.errors import AccessError, ConfigError, NotFoundError
from tdbg_lab.server.roots import Entry, entry, make_roots, require_inside
from tdbg_lab.server.scan import scan


def test_roots_have_unique_stable_names(tmp_path):
    paths = [str(tmp_path / a / "runs") for a in "ab"]
    names = [root.name for root in make_roots(paths, str(tmp_path))]
    assert names == ["runs", "runs-2"]
    assert [root.name for root in make_roots([], str(tmp_path))] == [tmp_path.name]


def test_relative_root_counts_from_the_server_root(tmp_path):
    (root,) = make_roots(["runs"], str(tmp_path))
    assert root.path == (tmp_path / "runs").resolve()


def test_root_given_twice_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="twice"):
        make_roots(["runs", "./runs"], str(tmp_path))


def test_id_is_a_hash_of_root_name_and_path(tmp_path):
    import hashlib

    (root,) = make_roots([], str(tmp_path))
    digest = hashlib.sha256(f"{tmp_path.name}/a/b".encode()).hexdigest()
    assert entry(root, "a/b").id == digest[:16]


@pytest.mark.parametrize("relative", ["../outside", "a/../../outside"])
def test_path_that_climbs_is_refused(tmp_path, relative):
    (tmp_path / "root" / "a").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (root,) = make_roots([], str(tmp_path / "root"))
    with pytest.raises((AccessError, NotFoundError)):
        require_inside(Entry("0" * 16, root, relative, root.path / relative))


def test_missing_directory_is_told(tmp_path):
    (root,) = make_roots([], str(tmp_path))
    with pytest.raises(NotFoundError, match="gone"):
        require_inside(entry(root, "nothing"))


def test_root_behind_a_link_is_fine(tmp_path):
    (tmp_path / "real" / "run").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (root,) = make_roots([str(tmp_path / "link")], str(tmp_path))
    require_inside(entry(root, "run"))


def test_root_of_links_that_go_round_in_circles_is_one_that_cannot_be_read(tmp_path):
    (tmp_path / "runs").symlink_to("other")
    (tmp_path / "other").symlink_to("runs")
    (root,) = make_roots(["runs"], str(tmp_path))
    found = scan(root, depth=3, max_runs=10)
    assert (found.runs, found.folders) == ((), ())
