"""An experiment is a benchmark, a recipe and a seed: everything that is trained is trained by one.

- `named`: `Experiment` and what it is made of, from names; without torch, so that what nothing
  reads is refused at once.
- `layers`: how params/benchmarks.yaml, params/recipes.yaml and overrides are laid over each other.
- `parts`: rows and batches of an experiment.
- `trained`: its network, its loss, the training, and what is measured after every epoch.
- `scored`: the scores table: rules, fitted and chosen ones, what a method itself has to say.
"""

from osnb.experiment.named import (
    Benchmark,
    Experiment,
    Machine,
    Recipe,
    described,
    folded,
    is_training,
    of,
    run_name,
    variant,
)
