"""What submitting the work costs, and how far the CPU runs ahead."""
