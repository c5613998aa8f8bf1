"""The HTTP side: routes, error responses, the AsyncAPI document."""
