"""Stale views cleaned by sampling: data, views and experiments of SVC."""
