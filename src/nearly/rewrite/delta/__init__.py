"""What changes in a plan's rows when its tables change: signed weights through every operator."""
