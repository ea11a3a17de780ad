"""Hypotheses: what each claims, how much of the step it holds, and the verdict."""
