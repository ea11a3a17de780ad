"""Several runs held against one another: what their step times do as one thing changes."""
