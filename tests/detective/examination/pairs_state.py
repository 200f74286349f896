"""Modules and losses that remember something from one forward to the next."""

from copy import deepcopy

import torch
from detective.examination.pairs import Parts, batch, cross_entropy, mlp, pair
from torch import Tensor, nn
from torch.nn import functional as F


@pair("module_state", additive=False)
def byol_with_an_ema_teacher() -> Parts:
    model = mlp()
    teacher = deepcopy(model).requires_grad_(False)
    for parameter in teacher.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))

    def loss(student: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        with torch.no_grad():
            for mine, theirs in zip(teacher.parameters(), student.parameters(), strict=True):
                mine.lerp_(theirs, 0.1)
            wanted = F.normalize(teacher(data[0]), dim=1)
        return (F.normalize(student(data[0] + 0.1), dim=1) - wanted).square().sum(1).mean()

    return Parts(model, loss, batch(), others=(teacher,))


class Codebook(nn.Module):
    """Vector quantisation whose codes move in forward."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("codes", torch.randn(4, 8))

    def forward(self, x: Tensor) -> Tensor:
        nearest = torch.cdist(x, self.codes).argmin(1)
        chosen = self.codes[nearest]
        if self.training:
            with torch.no_grad():
                for k in nearest.unique():
                    self.codes[k].lerp_(x[nearest == k].mean(0), 0.2)
        return chosen + x - x.detach() + 0.3 * (x - chosen.detach())


@pair("module_state", additive=False)
def vector_quantisation() -> Parts:
    return Parts(mlp(Codebook()), cross_entropy, batch())


class Queue:
    """A memory bank that is no module."""

    def __init__(self) -> None:
        self.keys, self.at = F.normalize(torch.randn(16, 3), dim=1), 0

    def loss(self, model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        query, key = F.normalize(model(data[0]), dim=1), F.normalize(model(data[0] + 0.1), dim=1).detach()
        positive = (query * key).sum(1, keepdim=True)
        logits = torch.cat([positive, query @ self.keys.to(query.dtype).T], 1) / 0.2
        self.keys = self.keys.clone()
        self.keys[self.at : self.at + len(key)] = key.to(self.keys.dtype)
        self.at = (self.at + len(key)) % len(self.keys)
        return F.cross_entropy(logits, torch.zeros(len(query), dtype=torch.long))


@pair("module_state", additive=False)
def moco_with_a_queue() -> Parts:
    return Parts(mlp(), Queue().loss, batch())


class Stateful(nn.Module):
    """A recurrent layer that goes on from where the last batch ended."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.out, self.hidden = nn.GRU(6, 5, batch_first=True), nn.Linear(5, 3), None

    def forward(self, x: Tensor) -> Tensor:
        states, last = self.rnn(x[:, None], self.hidden)
        self.hidden = last.detach()
        return self.out(states[:, -1])


@pair("module_state", additive=False)
def stateful_recurrent_network() -> Parts:
    return Parts(Stateful(), cross_entropy, batch())


@pair("unequal_items", "module_state", additive=False)
def stateful_recurrent_network_with_a_smaller_tail() -> Parts:
    return Parts(Stateful(), cross_entropy, batch(examples=10), 4)


@pair()
def a_cache_that_is_overwritten() -> Parts:
    class Remembers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.seen, self.size = None, 0

        def forward(self, x: Tensor) -> Tensor:
            self.seen, self.size = x, len(x)
            return x

    return Parts(mlp(Remembers()), cross_entropy, batch())


@pair("module_state", additive=True)
def a_moving_average_in_a_float() -> Parts:
    class Averaged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.average = 0.0

        def forward(self, x: Tensor) -> Tensor:
            self.average = 0.9 * self.average + 0.1 * float(x.detach().mean())
            return x if self.training else x - self.average

    return Parts(mlp(Averaged()), cross_entropy, batch())


@pair()
def a_log_of_losses() -> Parts:
    history: list[float] = []

    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        found = cross_entropy(model, data)
        history.append(found.item())
        return found

    return Parts(mlp(), loss, batch())


@pair("module_state", additive=False)
def a_weight_that_grows_with_the_steps() -> Parts:
    steps = 0

    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        nonlocal steps
        steps += 1
        return cross_entropy(model, data) + min(1.0, steps / 100) * model(data[0]).square().mean()

    return Parts(mlp(), loss, batch())


@pair("module_state", additive=False)
def centres_that_follow_in_forward() -> Parts:
    centres = torch.randn(3, 3)

    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        found = model(data[0])
        pulled = (found - centres.to(found.dtype)[data[1]]).square().sum(1).mean()
        with torch.no_grad():
            centres.index_add_(0, data[1], (0.1 * found).to(centres.dtype))
        return pulled

    return Parts(mlp(), loss, batch())


@pair()
def a_counter_that_nobody_reads() -> Parts:
    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x

    return Parts(mlp(Counted()), cross_entropy, batch())


@pair()
def an_embedding_that_is_renormed_in_forward() -> Parts:
    model = nn.Sequential(nn.Embedding(10, 6, max_norm=1.0), nn.Flatten(), nn.Linear(12, 3))
    return Parts(model, cross_entropy, (torch.randint(0, 10, (8, 2)), torch.randint(0, 3, (8,))))


@pair("module_state", additive=False)
def dino_with_a_centre() -> Parts:
    class Dino(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("centre", torch.zeros(3))

        def forward(self, student: Tensor, teacher: Tensor) -> Tensor:
            wanted = F.softmax((teacher - self.centre) / 0.1, dim=1).detach()
            self.centre = 0.9 * self.centre + 0.1 * teacher.detach().mean(0)
            return -(wanted * F.log_softmax(student, dim=1)).sum(1).mean()

    teacher, criterion = mlp().requires_grad_(False), Dino()

    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        return criterion(model(data[0]), teacher(data[0]))

    return Parts(mlp(), loss, batch(), others=(teacher, criterion))
