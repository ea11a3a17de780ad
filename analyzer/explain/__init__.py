"""Why: budgets, kernels, host culprits and verdicts from what was reconstructed."""
