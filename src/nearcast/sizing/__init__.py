"""How many machines a deployment needs: a small cost model, calibrated on this machine."""
