"""The engines behind the service and the events that come out of them."""
