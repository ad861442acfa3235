"""What can be said about an answer before everything is read: estimates, confidence intervals, certain bounds."""
