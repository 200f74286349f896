"""The caller's next forward, optimizer and hooks are what they were, also where caches and hooks hold state."""

import functools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from detective.examination.pairs import batch, cross_entropy, mlp
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from gradacc_lessons import examine

X, Y = batch()


class Masked(nn.Module):
    """Mixes the features with a mask from somewhere."""

    def __init__(self, mask: Any) -> None:
        super().__init__()
        self.layer, self.mask = nn.Linear(6, 3), mask

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.mask(len(x), 6) @ x[:, :, None].expand(-1, -1, 6))[:, -1]


def _mask(examples: int, length: int) -> Tensor:
    return torch.tril(torch.ones(examples, length, length))


@pytest.mark.parametrize("entries", [1, None])
def test_a_cache_of_the_loss_or_model_holds_what_it_held(entries: int | None) -> None:
    mask = functools.lru_cache(maxsize=entries)(_mask)
    model = Masked(mask)
    model(X)
    before, held = mask.cache_info(), mask(8, 6)
    assert examine(model, cross_entropy, (X, Y), 2).additive
    assert mask.cache_info()._replace(hits=before.hits) == before and mask(8, 6) is held
    assert model.mask is mask
    assert model(X).dtype == model(X[:2]).dtype == torch.float32


LIBRARY = """
import torch
CACHE = {}
def mask(examples, length):
    if KEEP_ALL:
        if (examples, length) not in CACHE:
            CACHE[examples, length] = torch.tril(torch.ones(examples, length, length))
        return CACHE[examples, length]
    if CACHE.get("key") != (examples, length):
        CACHE.update(key=(examples, length), mask=torch.tril(torch.ones(examples, length, length)))
    return CACHE["mask"]
"""


@pytest.mark.parametrize("keep_all", [False, True])
@pytest.mark.parametrize("used_before", [False, True])
def test_a_cache_in_a_library_does_not_break_the_next_forward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_all: bool, used_before: bool
) -> None:
    library = ModuleType("cached_masks")
    library.__file__ = str(tmp_path / "site-packages" / "cached_masks.py")
    library.KEEP_ALL = keep_all  # type: ignore[attr-defined]
    exec(LIBRARY, vars(library))
    monkeypatch.setitem(sys.modules, "cached_masks", library)
    model = Masked(library.mask)
    wanted = [model(X), model(X[:2])] if used_before else []
    found = examine(model, cross_entropy, (X, Y), 2)
    assert found.additive and "left_wide" not in found.evidence
    now = [model(X), model(X[:2])]
    assert all(tensor.dtype == torch.float32 for tensor in now)
    assert all(map(torch.equal, wanted, now))


def test_what_hooks_on_gradients_write_is_put_back_and_their_handles_work() -> None:
    model, norms, log = mlp(), torch.zeros(4), []
    handles = []
    for k, parameter in enumerate(model.parameters()):

        def hook(gradient: Tensor, k: int = k) -> Tensor:
            norms[k] = norms[k] * 0.9 + gradient.norm()
            log.append(k)
            return gradient.clamp(-0.01, 0.01)

        handles.append(parameter.register_hook(hook))
    assert examine(model, cross_entropy, (X, Y), 2).causes == ("unknown",)
    assert norms.tolist() == [0.0] * 4 and not log
    cross_entropy(model, (X, Y)).backward()
    assert sorted(log) == [0, 1, 2, 3] and float(model[0].weight.grad.abs().max()) <= 0.01
    for handle in handles:
        handle.remove()
    cross_entropy(model, (X, Y)).backward()
    assert len(log) == 4


def test_what_hooks_on_modules_write_is_put_back() -> None:
    model, seen = mlp(), []
    model[0].register_forward_hook(lambda module, inputs, output: seen.append(float(output.detach().mean())))
    assert examine(model, cross_entropy, (X, Y), 2).additive and not seen


def test_an_optimizer_in_backward_keeps_its_state_where_only_backward_will_do() -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 3)

        def forward(self, x: Tensor) -> Tensor:
            return checkpoint(self.b, self.a(x), use_reentrant=True)

    model = Checkpointed()
    optimizers = {parameter: torch.optim.Adam([parameter]) for parameter in model.parameters()}
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: optimizers[p].step())
    with pytest.raises(ValueError, match="an optimizer runs in it"):
        examine(model, cross_entropy, (X, Y), 2)
    assert not any(optimizer.state for optimizer in optimizers.values())


LAYOUTS = {
    "coo": lambda t: t.to_sparse(),
    "csr": lambda t: t.to_sparse_csr(),
    "csc": lambda t: t.to_sparse_csc(),
    "quantized": lambda t: torch.quantize_per_tensor(t, 0.1, 0, torch.qint8),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sparse_and_quantized_buffers_can_be_examined_and_stay(layout: str) -> None:
    model = mlp()
    model.register_buffer("graph", LAYOUTS[layout](torch.eye(6)))
    before = model.graph

    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        graph = model.graph.dequantize() if layout == "quantized" else model.graph
        return nn.functional.cross_entropy(model((graph @ data[0].T).T), data[1])

    found = examine(model, loss, (X, Y), 2)
    assert found.additive and not found.causes
    assert model.graph is before and before.dtype in (torch.float32, torch.qint8)
    assert torch.equal(before.dequantize() if layout == "quantized" else before.to_dense(), torch.eye(6).round())


def test_a_sparse_gradient_that_is_there_stays() -> None:
    model, data = nn.Sequential(nn.EmbeddingBag(30, 6, sparse=True), nn.Linear(6, 3)), (torch.randint(0, 30, (8, 4)), Y)
    cross_entropy(model, data).backward()
    gradient, before = model[0].weight.grad, model[0].weight.grad.to_dense()
    assert examine(model, cross_entropy, data, 2).additive
    assert model[0].weight.grad is gradient and torch.equal(gradient.to_dense(), before)
