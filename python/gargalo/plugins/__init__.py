"""What users add: congestion controls, schedulers and stacks, in Python or as shared libraries."""
