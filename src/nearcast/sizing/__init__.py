"""How many machines a deployment takes: a small model, calibrated on this machine, and what follows from it."""
