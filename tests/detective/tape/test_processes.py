"""Two processes with DistributedDataParallel: which backward all-reduces."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = """
import contextlib, sys
from datetime import timedelta
import torch, torch.distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
sys.path.insert(0, {tests!r})
from detective.tape.bench import batches, cuts, ids, lengths, net, taped

rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://{store}", rank=rank, world_size=2, timeout=timedelta(seconds=60))
for wrapped in (True, False):
    for held in (True, False):
        inner = net()
        model = DistributedDataParallel(inner)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with taped(model if wrapped else inner) as tape:
            for _ in range(2):
                for i, (x, labels) in enumerate(batches(seed=rank)):
                    last = (i + 1) % 4 == 0 or i == 9
                    with model.no_sync() if held and not last else contextlib.nullcontext():
                        (F.cross_entropy(model(x), labels) / (4 if i < 8 else 2)).backward()
                    if last:
                        optimizer.step()
                        optimizer.zero_grad()
        reduced = [event.micro_batch for event in tape.events if event.kind == "all_reduce"]
        assert lengths(tape) == [4, 4, 2] * 2, lengths(tape)
        assert ids(tape) == ([] if held else ["all_reduce_every_micro_batch"]), ids(tape)
        assert reduced == ([4, 8, 10, 14, 18, 20] if held else list(range(1, 21))), (wrapped, held, reduced)
print("seen")
dist.destroy_process_group()
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no torch.distributed")
def test_all_reduces(tmp_path: Path) -> None:
    tests = str(Path(__file__).resolve().parents[2])
    script = SCRIPT.format(tests=tests, store=tmp_path / "store")
    command = [sys.executable, "-W", "ignore", "-c", script]
    ranks = [subprocess.Popen([*command, str(rank)], stdout=-1, stderr=-1, text=True) for rank in range(2)]
    for process in ranks:
        printed, errors = process.communicate(timeout=120)
        assert printed == "seen\n", errors
