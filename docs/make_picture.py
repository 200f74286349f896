"""Make docs/picture.png, the picture of the README, from two real runs: `python docs/make_picture.py`."""

from pathlib import Path
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gradacc_lessons import Recipe
from gradacc_lessons.accumulation import split
from gradacc_lessons.lessons.training import add_gradient, collect, gradient, train
from gradacc_lessons.palette import BLACK, GREY, RIGHT, WRONG, YELLOW
from gradacc_lessons.tasks import Task, digits

FILE = Path(__file__).with_name("picture.png")
UPDATES = 60
LEARNING_RATE = 0.3
DOTS_PER_INCH = 160
HIGHEST_LOSS = 3.2


def main() -> None:
    """Run both experiments and write the picture."""
    task = digits("mlp", dtype=torch.float64)
    figure = Figure(figsize=(9, 3.9), dpi=DOTS_PER_INCH, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    gradients, curves = figure.subplots(1, 2, width_ratios=(4, 5))
    draw_gradients(gradients, task)
    draw_training(curves, task)
    figure.savefig(FILE, metadata={"Software": None})


def draw_gradients(ax: Axes, task: Task) -> None:
    """A dot per weight: the gradient of 32 digits at once against that of four micro-batches of 8 added up."""
    batch = tuple(tensor[:32] for tensor in task.train)

    def accumulated(recipe: Recipe) -> torch.Tensor:
        model = task.build_model()
        add_gradient(model, split(batch, recipe.micro_batch_size), task, recipe)
        return gradient(model)

    full = accumulated(Recipe(32, 1))
    parts, undivided = accumulated(Recipe(8, 4)), accumulated(Recipe(8, 4, loss_scaling="none"))
    drawn = full.abs().argsort(descending=True)[1:1000:4]
    unit = full[drawn].abs().max()
    ax.plot([-1, 1], [-1, 1], color=GREY, linewidth=1)
    looks: dict[str, Any] = {"linestyle": "none", "markersize": 3.5}
    ax.plot(full[drawn] / unit, undivided[drawn] / unit, marker="x", color=WRONG, label="without 1/N", **looks)
    ax.plot(full[drawn] / unit, parts[drawn] / unit, marker="o", color=RIGHT, label="divided by N", **looks)
    ax.set_title("One dot per weight: four micro-batches\nadd up to the gradient of all 32", fontsize=10)
    ax.set_xlabel("gradient of 32 digits at once (largest = 1)")
    ax.set_ylabel("4 micro-batches of 8, added up (same unit)")
    ax.legend(frameon=False, fontsize=9)
    _plain(ax)


def draw_training(ax: Axes, task: Task) -> None:
    """Three cuts of the same 32 digits train alike; without 1/N the same cut does not."""
    looks = [((32, 1), "-", RIGHT, 5.0), ((8, 4), "--", YELLOW, 2.4), ((1, 32), ":", BLACK, 2.0)]
    for (b, n), style, colour, width in looks:
        rows = collect(train(task, Recipe(b, n, learning_rate=LEARNING_RATE), UPDATES))
        ax.plot(rows["update"], rows["loss"], style, color=colour, linewidth=width, label=f"{b} x {n}")
    undivided = Recipe(1, 32, learning_rate=LEARNING_RATE, loss_scaling="none")
    rows = collect(train(task, undivided, UPDATES))
    ax.plot(rows["update"], rows["loss"], "-", color=WRONG, linewidth=1.2, label="1 x 32, without 1/N")
    peak = rows["loss"].max()
    ax.annotate(f"off the axis, up to {peak:.0f}", (20, 2.95), fontsize=9, color=BLACK)
    ax.set_ylim(0, HIGHEST_LOSS)
    ax.set_title("Three ways to cut 32 digits, one training\n(b x N: micro-batch size x micro-batches)", fontsize=10)
    ax.set_xlabel("updates")
    ax.set_ylabel("training loss (nats)")
    ax.legend(frameon=False, fontsize=9)
    _plain(ax)


def _plain(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="#E4E4E4", linewidth=0.6)
    ax.set_axisbelow(True)


if __name__ == "__main__":
    main()
