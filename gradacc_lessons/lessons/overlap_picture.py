"""Lesson 06: a few noisy digits, the masks of their strokes, and what the small network finds."""

from typing import ClassVar

import pandas as pd
import torch

from gradacc_lessons.lessons.overlap import batch_dice, masks_of, sample_dice, trained_segmenter
from gradacc_lessons.ui import LiveFigure, StaticTwin
from gradacc_lessons.ui.static import picture_html

SHOWN = 6
ROWS = {"image": "in noise", "mask": "mask", "found": "found"}
"""What stands in each row of the picture, by the column it comes from."""


def found_masks(count: int = SHOWN) -> pd.DataFrame:
    """A row per example: `image`, `mask` and `found` (8x8 arrays), `pixels` of the mask, its own Dice `loss`.

    `mean` and `batch`, the same in all rows, are the mean of those losses and the Dice loss of all examples together.
    """
    model, (images, masks) = trained_segmenter(), masks_of(count)
    with torch.no_grad():
        found = model(images).sigmoid()
        losses = [float(sample_dice(model, (images[k : k + 1], masks[k : k + 1]))) for k in range(count)]
        mean, batch = float(sample_dice(model, (images, masks))), float(batch_dice(model, (images, masks)))
    parts = {"image": images, "mask": masks, "found": found}
    return pd.DataFrame(
        {
            **{name: list(part[:, 0].numpy()) for name, part in parts.items()},
            "pixels": masks.sum(dim=(1, 2, 3)).int().tolist(),
            "loss": losses,
            "mean": mean,
            "batch": batch,
        }
    )


class MasksFigure(LiveFigure):
    """Three rows: what the network sees, what it should find, what it finds."""

    description: ClassVar[str] = (
        "Six digits of 8x8 pixels, one in each column: in the first row in noise, in the second the mask of its "
        "strokes, in the third the probabilities that the network gives, dark for high. Above each stands its own "
        "Dice loss."
    )
    width, height = 700, 360

    def draw(self, data: pd.DataFrame) -> str:
        """All pictures at once; nothing moves."""
        axes = self.new_axes(len(ROWS), len(data))
        for place, ax in enumerate(axes):
            (name, label), column = list(ROWS.items())[place // len(data)], place % len(data)
            row = data.iloc[column]
            ax.imshow(row[name], cmap="Greys", vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
            ax.grid(False)
            if column == 0:
                ax.set_ylabel(label, fontsize=11)
            if place < len(data):
                ax.set_title(f"loss {row['loss']:.2f}", fontsize=10)
        return masks_sentence(data)

    def update(self, data: pd.DataFrame) -> str:
        """The same data is the same picture."""
        return self.draw(data)


def masks_sentence(data: pd.DataFrame) -> str:
    """Both ways to make one number of them."""
    first = data.iloc[0]
    return (
        f"The mean of the {len(data)} examples' Dice losses is {first['mean']:.3f}; the Dice loss of all of them "
        f"together is {first['batch']:.3f}."
    )


def show_masks() -> StaticTwin:
    """The picture, its sentence, and the sizes of the masks with their losses."""
    data, figure = found_masks(), MasksFigure()
    sentence = figure.draw(data)
    table = pd.DataFrame(
        {
            "example": range(1, len(data) + 1),
            "stroke (pixels)": data["pixels"],
            "its Dice loss": data["loss"].map("{:.2f}".format),
        }
    )
    return StaticTwin(picture_html(figure, sentence), sentence, table)
