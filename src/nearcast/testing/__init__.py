"""What the answer is, and how to show that an index gives it. Shipped, so that authors of an index can use it too.

`oracle` holds the definition of the boolean answer in plain Python; it knows neither the compiler nor the indexes.
`comparison` puts a matcher beside it and compares after every call. On top of that pair stand three ways to ask:
`conformance`, a class of tests with one edge case per name (inherit it and say how a matcher is made); `histories`, random
sequences of subscribe, replace, unsubscribe, publish and save + open that Hypothesis shortens when they fail; and
`random_worlds`, thousands of small seeded worlds that many matchers live through side by side.
What they are made of comes from `strategies` (Hypothesis) and `worlds` (a seeded generator, much faster), both on a coarse
grid of coordinates, where borders meet borders, because that is where indexes go wrong.

To test an index of your own::

    class TestMyIndex(BooleanIndexTests):
        def make_matcher(self, space="lonlat", **options):
            return nearcast.Matcher(index="my_index", space=space, **options)

Nothing else in nearcast imports this package. It needs pytest and hypothesis.
"""
