"""Tests that every index must pass."""
