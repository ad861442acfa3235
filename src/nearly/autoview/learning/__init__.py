"""What the learned policy knows: features, a network, demand, and credits of what is kept."""
