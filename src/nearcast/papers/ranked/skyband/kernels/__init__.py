"""The loops of Skype's engine: ticks, buffers and the calendar of expiries."""
