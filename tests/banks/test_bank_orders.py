"""The accepted orders are those that work, and no others: each order of events is run for real."""

from collections.abc import Callable
from itertools import permutations

import pytest
import torch

from gradacc_lessons.course import course_folder
from gradacc_lessons.quiz.bank import find_bank, load_bank
from gradacc_lessons.quiz.questions import OrderQuestion

LEARNING_RATE = 0.5
IMAGES = torch.tensor([1.0, 3.0, 7.0, 13.0], dtype=torch.float64)


class Window:
    """One window with N = 2 of a model with one weight; remembers whose activations it holds, and the most of them."""

    def __init__(self) -> None:
        self.weight = torch.nn.Parameter(torch.ones((), dtype=torch.float64))
        self.optimizer = torch.optim.SGD([self.weight], lr=LEARNING_RATE)
        self.losses: dict[int, torch.Tensor] = {}
        self.most_held = 0

    def forward(self, number: int) -> None:
        self.losses[number] = (self.weight * IMAGES[2 * number - 2 : 2 * number]).square().mean() / 2
        self.most_held = max(self.most_held, len(self.losses))

    def backward(self, number: int) -> None:
        self.losses.pop(number).backward()

    @property
    def events(self) -> dict[str, Callable[[], None]]:
        return {
            "forward-1": lambda: self.forward(1), "backward-1": lambda: self.backward(1),
            "forward-2": lambda: self.forward(2), "backward-2": lambda: self.backward(2),
            "update": self.optimizer.step, "zero": self.optimizer.zero_grad,
        }  # fmt: skip

    def works(self, order: tuple[str, ...]) -> bool:
        """Whether this order is the update of the full batch, with one micro-batch in memory and nothing left over."""
        try:
            for event in order:
                self.events[event]()
        except KeyError:  # a backward before its forward
            return False
        full = 1 - LEARNING_RATE * 2 * IMAGES.square().mean()
        same = abs(self.weight.item() - full.item()) < 1e-9
        return same and self.weight.grad is None and self.most_held == 1


def test_of_all_orders_in_a_window_those_are_accepted_that_work() -> None:
    question = load_bank(find_bank(course_folder("quizzes"), "01")).question("acc-order-window")
    assert isinstance(question, OrderQuestion)
    ids = [item.id for item in question.items]
    working = {order for order in permutations(ids) if Window().works(order)}
    assert working == set(question.orders)


ORDERS = [
    question
    for path in sorted(course_folder("quizzes").glob("*.yaml"))
    for question in load_bank(path).questions
    if isinstance(question, OrderQuestion)
]


@pytest.mark.parametrize("question", ORDERS, ids=lambda each: each.id)
def test_each_thing_that_can_be_out_of_place_has_its_own_words(question: OrderQuestion) -> None:
    assert all(item.feedback for item in question.items)
