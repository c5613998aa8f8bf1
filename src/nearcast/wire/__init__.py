"""What goes between server and client: the bodies of the HTTP API, and the signatures of webhooks. It knows neither side."""
