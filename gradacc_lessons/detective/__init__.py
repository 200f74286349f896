"""Which mistake is in this loop? A catalogue of faults, a process that runs learners' loops, and a diagnosis.

`diagnose.diagnose` asks, `faults.FAULTS` knows, `files.load_function` fetches FILE:FUNCTION. The rest is how:
`scenarios` (what a loop is tried on), `oracle` (what a loop with given mistakes would do), `suspects` (which mistakes
explain what it did), `measure` and `verdict` (in words); `client` (near end) and `worker`, `child`, `rig` (far end).
"""
