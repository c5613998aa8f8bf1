"""The edge cases every boolean index must get right, one per test, by theme: words, places, updates, tables, insight.

Each class is a mixin over `base.Cases`; `nearcast.testing.conformance.boolean.BooleanIndexTests` is all of them together.
Many come from the errata of the papers' algorithms: what a printed algorithm got wrong has a test here.
"""
