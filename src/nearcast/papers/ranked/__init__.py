"""The ranked engine and the ranked indexes of papers."""
