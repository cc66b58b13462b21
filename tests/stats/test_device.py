import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tdbg_lab.stats import reference  # noqa: E402
from tdbg_lab.stats.columns import Column  # noqa: E402
from tdbg_lab.stats.device import DeviceBuffer, summarize_on_device  # noqa: E402
from tdbg_lab.stats.layouts import Part  # noqa: E402
from tdbg_lab.stats.partials import block_from_partials  # noqa: E402
from tests.gpu import Gate  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
    torch.manual_seed(3)


def _gated(monkeypatch, slots):
    gates = []

    def make(*_):
        gates.append(Gate())
        return gates[-1]

    monkeypatch.setattr("tdbg_lab.stats.device.transfer_of", make)
    return DeviceBuffer("cpu", slots=slots), gates


def _read(buffer):
    ticket = buffer.send()
    ticket.wait()
    return ticket.read().block


def _reference(tensors, axes=None):
    return reference.summarize([t.numpy() for t in tensors], channel_axes=axes)


def test_device_buffer_equals_reference(assert_agree):
    buffer = DeviceBuffer("cpu")
    tensors = [
        torch.relu(torch.randn(4, 3, 5)),
        torch.randn(7),
        torch.zeros(0),
        torch.tensor(2.0),
        torch.arange(9),
    ]
    axes = [1, None, 0, None, 0]
    assert buffer.add(tensors, axes) == 0
    assert buffer.add(tensors[:2], axes[:2]) == len(tensors)
    block = _read(buffer)
    assert_agree(block, _reference([*tensors, *tensors[:2]], [*axes, *axes[:2]]))
    assert buffer.send() is None, "nothing was added since"


def test_device_buffer_reads_tensors_before_they_change(assert_agree):
    buffer = DeviceBuffer("cpu", slots=1)
    tensor = torch.ones(5)
    buffer.add([tensor])
    tensor.zero_()
    assert_agree(_read(buffer), _reference([torch.ones(5)]))


def test_numbers_come_with_the_rows():
    buffer = DeviceBuffer("cpu", slots=1)
    assert buffer.add_numbers(torch.tensor(3.5)) == 0
    buffer.add([torch.ones(2)])
    assert buffer.add_numbers(torch.tensor([[1, 2], [3, 4]])) == 1
    ticket = buffer.send()
    block, numbers, _ = ticket.read()
    assert block.count.tolist() == [2]
    assert numbers.tolist() == [3.5, 1.0, 2.0, 3.0, 4.0]
    buffer.add_numbers(torch.tensor(9.0))
    assert ticket.read().numbers.tolist() == [3.5, 1.0, 2.0, 3.0, 4.0], (
        "what was read stays, the slot goes on"
    )


def test_ticket_says_without_waiting_whether_it_has_arrived(monkeypatch):
    buffer, gates = _gated(monkeypatch, 2)
    buffer.add([torch.ones(2)])
    ticket = buffer.send()
    assert not ticket.arrived()
    gates[0].opened.set()
    assert ticket.arrived()


def test_device_buffer_drops_rather_than_waits(monkeypatch):
    buffer, gates = _gated(monkeypatch, 2)
    tickets = []
    for _ in range(2):
        assert buffer.add([torch.ones(1)]) == 0
        tickets.append(buffer.send())
    assert buffer.add([torch.ones(1), torch.ones(2)]) is None
    assert buffer.add_numbers(torch.ones(3)) is None
    assert buffer.dropped == 5
    assert buffer.send() is None
    gates[0].opened.set()
    tickets[0].read()
    assert buffer.add([torch.ones(1)]) == 0


def test_what_a_device_does_not_give_has_a_reason(monkeypatch):
    buffer, _ = _gated(monkeypatch, 1)
    buffer.add([torch.ones(2)])
    buffer.add_numbers(torch.ones(1))
    ticket = buffer.send()
    ticket.wait(0.05)
    assert ticket.arrived()
    block, numbers, values = ticket.read()
    assert not len(values) + len(numbers)
    assert "did not answer" in block.reason(0)
    assert buffer.add([torch.ones(2)]) is None, "the device may still write to that slot"


def test_device_buffer_uses_its_slots_again_for_more_and_less(assert_agree):
    buffer = DeviceBuffer("cpu", slots=1)
    for n in (3, 40, 1, 41, 90):
        tensors = [torch.randn(n, 3) for _ in range(n)]
        buffer.add(tensors, [1] * n)
        assert_agree(_read(buffer), _reference(tensors, [1] * n))


def test_device_buffer_gives_reasons():
    buffer = DeviceBuffer("cpu")
    buffer.add([torch.ones(2), torch.empty(3, device="meta"), "no tensor"])
    buffer.add([torch.ones(2)], [None, None])
    buffer.add([])
    block = _read(buffer)
    assert [block.reason(i) is None for i in range(4)] == [True, False, False, False]
    assert "ValueError" in block.reason(3)
    assert block.count.tolist() == [2, 0, 0, 0]


def test_a_full_device_costs_the_rows_of_one_time_only(assert_agree, monkeypatch):
    buffer, full = DeviceBuffer("cpu"), [True]
    grow = Column._grow

    def out_of_memory(column, used):
        if full.pop() if full else False:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
        grow(column, used)

    monkeypatch.setattr(Column, "_grow", out_of_memory)
    for _ in range(3):
        assert buffer.add([torch.ones(2)]) is not None
    buffer.add_numbers(torch.tensor(0.5))
    block, numbers, _ = buffer.send().read()
    assert "out of memory" in block.reason(2)
    assert numbers.tolist() == [0.5], "a loss is no loss of ours"
    for _ in range(100):
        buffer.add([torch.ones(2)])
    assert_agree(_read(buffer), _reference([torch.ones(2)] * 100))


def test_device_buffer_of_sparse_tensors_counts_implicit_zeros(assert_agree):
    dense = torch.zeros(30, 4)
    dense[2, 1] = 3.0
    buffer = DeviceBuffer("cpu")
    buffer.add([dense.to_sparse(), dense])
    assert_agree(_read(buffer), _reference([dense, dense]))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int64"])
def test_summarize_on_device_cuts_long_tensors(assert_agree, monkeypatch, dtype):
    monkeypatch.setattr("tdbg_lab.stats.torch_ops._PART", 1000)
    tensor = (torch.randn(4500) * 50).to(getattr(torch, dtype))
    want = reference.summarize([tensor.float().numpy() if dtype == "bfloat16" else tensor.numpy()])
    assert_agree(summarize_on_device([Part(tensor, None)]), want)


def test_runs_of_one_tensor_merge_to_what_it_is(assert_agree):
    """Counts, extremes and moments of tensors of which a device measured several runs each."""
    generator = np.random.default_rng(0)
    tensors = [generator.normal(3.0, 0.01, 900), np.full(700, 2.5), generator.normal(0, 1e12, 800)]
    tensors[0][:301] = np.nan  # a whole run, and one more
    tensors[2][5] = -np.inf
    runs = [tensor[first : first + 300] for tensor in tensors for first in range(0, len(tensor), 300)]
    parts, whole = reference.summarize(runs), reference.summarize(tensors)
    finite = parts.finite_count.astype(float)
    columns = (finite, parts.nan_count, parts.pos_inf_count, parts.neg_inf_count, parts.zero_count)
    moments = (np.where(finite, one, bad) for one, bad in _moments(parts))
    partials = np.stack([*columns, *moments], axis=1).astype(np.float64)
    order = [1, 0, 2]  # of the tensors' runs: by type of element, say
    ends = np.cumsum([0, 3, 3, 3])
    partials = np.concatenate([partials[ends[one] : ends[one + 1]] for one in order])
    hist = np.zeros((3, 2048), np.int32)
    for row in range(3):
        inside = slice(whole.hist_offsets[row], whole.hist_offsets[row + 1])
        hist[row, whole.hist_bins[inside]] = whole.hist_counts[inside]
    widths = [(0, len(tensor)) for tensor in tensors]
    got = block_from_partials(partials, order, [3, 3, 3], hist, np.zeros(0), widths=widths)
    assert_agree(got, whole, rtol=1e-9)


def _moments(block):
    """Moments, each with what stands for it where nothing is finite."""
    return zip(
        (block.min, block.max, block.mean, block.std, block.l1), (np.inf, -np.inf, 0.0, 0.0, 0.0), strict=True
    )
