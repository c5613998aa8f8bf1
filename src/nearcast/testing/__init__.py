"""What the answer is, and how to show that an index gives it. Shipped, so that authors of an index can use it too.

`oracles` define the answers in plain Python, one oracle for each kind of subscription; they know neither the compiler nor the
indexes. `scenarios` are calls with the oracle's answers, in one form for all kinds, and run with any engine:

- `conformance` has classes of named edge cases. Inherit one and say how an engine is made;
- `scenarios.histories` are random calls drawn by Hypothesis, which shrinks what fails;
- `scenarios.boolean`, `.moving`, `.ranked` and `.safe_regions` write thousands of small random worlds from a seed. The oracle
  is asked once, however many engines run them.

Rows come from `strategies` (Hypothesis) and `scenarios.worlds` (a seeded generator, much faster). Both use a coarse grid of
coordinates, where borders meet borders, because that is where indexes go wrong.

To test an index of your own::

    class TestMyIndex(BooleanIndexTests):
        def make_matcher(self, space="lonlat", **options):
            return nearcast.Matcher(index="my_index", space=space, **options)

Nothing else in nearcast imports this package. It needs pytest and hypothesis.
"""
