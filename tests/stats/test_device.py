import pytest

torch = pytest.importorskip("torch")

from tdbg_lab.stats import reference  # noqa: E402
from tdbg_lab.stats.device import DeviceBuffer, _PlainTransfer, summarize_on_device  # noqa: E402
from tdbg_lab.stats.layouts import Part  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
    torch.manual_seed(3)


class _Gate(_PlainTransfer):
    """A device that has arrived only when it is told so."""

    def __init__(self):
        self.open = False

    def done(self):
        return self.open

    def wait(self):
        self.open = True


def _gated(slots):
    buffer = DeviceBuffer("cpu", slots=slots)
    gates = []
    for slot in buffer._free:
        gate = _Gate()
        gates.append(gate)
        slot._transfer, slot.done, slot.wait = gate, gate.done, gate.wait
    return buffer, gates[::-1]


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
    assert buffer.push(tensors, channel_axes=axes, tag="first")
    ((tag, block),) = buffer.poll()
    assert tag == "first"
    assert_agree(block, _reference(tensors, axes))
    assert buffer.poll() == []


def test_device_buffer_reads_tensors_before_they_change(assert_agree):
    buffer, _ = _gated(1)
    tensor = torch.ones(5)
    buffer.push([tensor])
    tensor.zero_()
    assert_agree(buffer.drain()[0][1], _reference([torch.ones(5)]))


def test_device_buffer_polls_in_order_and_without_waiting():
    buffer, gates = _gated(3)
    for tag in range(3):
        assert buffer.push([torch.full((2,), float(tag))], tag=tag)
    gates[1].open = True
    assert buffer.poll() == []
    gates[0].open = True
    assert [tag for tag, _ in buffer.poll()] == [0, 1]
    assert buffer.pending == 1
    assert [block.mean[0] for _, block in buffer.drain()] == [2.0]
    assert buffer.pending == 0


def test_device_buffer_drops_rather_than_waits():
    buffer, _ = _gated(2)
    pushed = [buffer.push([torch.ones(1)], tag=tag) for tag in range(4)]
    assert pushed == [True, True, False, False]
    assert buffer.dropped == 2
    assert [tag for tag, _ in buffer.drain()] == [0, 1]
    assert buffer.push([torch.ones(1)], tag=5)


def test_device_buffer_uses_its_slots_again_for_more_and_less(assert_agree):
    buffer = DeviceBuffer("cpu", slots=1)
    for n in (3, 40, 1, 41):
        tensors = [torch.randn(n, 3) for _ in range(n)]
        buffer.push(tensors, channel_axes=[1] * n)
        assert_agree(buffer.poll()[0][1], _reference(tensors, [1] * n))


def test_device_buffer_gives_reasons():
    buffer = DeviceBuffer("cpu")
    buffer.push([torch.ones(2), torch.empty(3, device="meta"), "no tensor"], tag=1)
    ((_, block),) = buffer.poll()
    assert [block.reason(i) is None for i in range(3)] == [True, False, False]
    buffer.push([torch.ones(2)], channel_axes=[None, None], tag=2)
    ((tag, block),) = buffer.poll()
    assert tag == 2
    assert "ValueError" in block.reason(0)
    buffer.push([], tag=3)
    assert len(buffer.poll()[0][1]) == 0


def test_device_buffer_of_sparse_tensors_counts_implicit_zeros(assert_agree):
    dense = torch.zeros(30, 4)
    dense[2, 1] = 3.0
    buffer = DeviceBuffer("cpu")
    buffer.push([dense.to_sparse(), dense])
    block = buffer.poll()[0][1]
    assert_agree(block, _reference([dense, dense]))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int64"])
def test_summarize_on_device_cuts_long_tensors(assert_agree, monkeypatch, dtype):
    monkeypatch.setattr("tdbg_lab.stats.torch_ops._PART", 1000)
    tensor = (torch.randn(4500) * 50).to(getattr(torch, dtype))
    want = reference.summarize([tensor.float().numpy() if dtype == "bfloat16" else tensor.numpy()])
    assert_agree(summarize_on_device([Part(tensor, None)]), want)
