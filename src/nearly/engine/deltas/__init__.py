"""Running deltas: how the rows of a plan change when its tables move from one version to another."""
