"""Edge cases of regions and locations."""

from __future__ import annotations

import pytest

from nearcast.model.message import Message
from nearcast.model.regions import Box, Circle, MultiPolygon, Polygon, region
from nearcast.model.subscription import Subscription
from nearcast.testing.conformance.base import Cases, grid, messages_at
from nearcast.testing.oracles.boolean import Pair

_SQUARE = Box(0, 0, 4, 4)
_FRAME = Polygon([[(0, 0), (6, 0), (6, 6), (0, 6)], [(2, 2), (4, 2), (4, 4), (2, 4)]])


class PlaceCases(Cases):
    """Where a message must be; all messages have the same keyword."""

    @pytest.mark.parametrize("space", ["lonlat", "plane"])
    def test_a_message_on_the_border_is_delivered_once(self, space: str) -> None:
        both = self.compare(space)
        both.subscribe([Subscription("all sides", ["a"], _SQUARE), Subscription("no keywords", [], _SQUARE)])
        locations = grid([-1, 0, 2, 4, 5])
        pairs = both.publish(messages_at(locations))
        inside = {number for number, (x, y) in enumerate(locations) if 0 <= x <= 4 and 0 <= y <= 4}
        assert {pair.message_id for pair in pairs} == inside
        assert len(pairs) == 2 * len(inside) == 18

    def test_a_hair_beside_the_border_is_outside(self) -> None:
        both = self.compare()
        low, high = 0.1, 0.3
        below, above = 0.09999999999999999, 0.30000000000000004
        both.subscribe([Subscription(1, ["a"], Box(low, low, high, high))])
        pairs = both.publish(messages_at([(low, low), (high, high), (below, low), (low, below), (above, high), (high, above)]))
        assert {pair.message_id for pair in pairs} == {0, 1}

    @pytest.mark.parametrize("space", ["lonlat", "plane"])
    def test_boxes_that_touch_in_a_side_or_a_corner_meet(self, space: str) -> None:
        both = self.compare(space)
        tiles = grid(range(-2, 3))
        both.subscribe([Subscription(f"{x},{y}", ["a"], Box(2 * x, 2 * y, 2 * x + 2, 2 * y + 2)) for x, y in tiles])
        pairs = both.publish(messages_at([Box(0, 0, 2, 2), (0, 0), Box(0, 0, 0, 2), (1, 1), Box(-4, -4, 6, 6)]))
        count = [sum(pair.message_id == number for pair in pairs) for number in range(5)]
        assert count == [9, 4, 6, 1, 25]

    def test_cells_of_a_grid_meet_messages_on_every_shared_border(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(16 * x + y, ["a"], Box(x, y, x + 1, y + 1)) for x, y in grid(range(16))])
        pairs = both.publish(messages_at(grid(range(17))))
        assert len(pairs) == 4 * 16 * 16

    @pytest.mark.parametrize("space", ["lonlat", "plane"])
    def test_no_region_means_everywhere(self, space: str) -> None:
        both = self.compare(space)
        both.subscribe(
            [
                Subscription(1, ["a"]),
                Subscription(2),
                Subscription(3, interest="a OR b"),
                Subscription(4, ["a"], Box(0, 0, 1, 1)),
            ]
        )
        corners = [(x, y) for x in (-180.0, 0.0, 180.0) for y in (-90.0, 0.0, 90.0)]
        pairs = both.publish(messages_at([*corners, Box(-180, -90, 180, 90)]))
        assert len(pairs) == 3 * 10 + 2

    def test_everywhere_in_the_plane_has_no_end(self) -> None:
        both = self.compare("plane")
        largest = 1.7976931348623157e308
        both.subscribe(
            [
                Subscription(1, ["a"]),
                Subscription(2, ["a"], Box(-largest, -largest, largest, largest)),
                Subscription(3, ["a"], Box(1e300, 1e300, 1e301, 1e301)),
                Subscription(4, ["a"], Box(0, 0, 1, 1)),
                Subscription(5, ["a"], Box(5e-324, 0, 5e-324, 0)),
            ]
        )
        pairs = both.publish(
            messages_at(
                [
                    (1e300, 1e300),
                    (-largest, largest),
                    (largest, -largest),
                    (5e-324, 0),
                    Box(-largest, -largest, largest, largest),
                ]
            )
        )
        assert len(pairs) == 3 + 2 + 2 + 4 + 5

    def test_huge_and_tiny_coordinates_together(self) -> None:
        both = self.compare("plane")
        sizes = [2.0**e for e in range(-1000, 1001, 250)]
        both.subscribe([Subscription(i, [], Box(-s, -s, s, s)) for i, s in enumerate(sizes)])
        assert len(both.publish(messages_at([(s, -s) for s in sizes]))) == sum(range(1, len(sizes) + 1))

    @pytest.mark.parametrize("space", ["lonlat", "plane"])
    def test_boxes_without_area_and_points(self, space: str) -> None:
        both = self.compare(space)
        regions = [Box(1, 1, 1, 1), Box(0, 1, 2, 1), Box(1, 0, 1, 2), Box(2, 2, 2, 2)]
        both.subscribe([Subscription(number, ["a"], place) for number, place in enumerate(regions)])
        pairs = both.publish(messages_at([(1, 1), (0, 1), (1, 2), (2, 2), Box(0, 0, 2, 2), Box(1, 1, 1, 1), Box(0, 0, 2, 0)]))
        reached = [{pair.subscription_id for pair in pairs if pair.message_id == number} for number in range(7)]
        assert reached == [{0, 1, 2}, {1}, {2}, {3}, {0, 1, 2, 3}, {0, 1, 2}, {2}]

    def test_negative_zero_is_zero(self) -> None:
        both = self.compare()
        both.subscribe([Subscription(1, ["a"], Box(-0.0, -0.0, 0.0, 0.0)), Subscription(2, ["a"], Box(0.0, 0.0, 1, 1))])
        assert len(both.publish(messages_at([(0.0, 0.0), (-0.0, -0.0)]))) == 4

    @pytest.mark.parametrize("place", [Box(3, 3, 5, 5), Box(3, 3, 3, 3), Box(3, 3, 3, 5)])
    def test_two_hundred_equal_regions(self, place: Box) -> None:
        both = self.compare()
        both.subscribe([Subscription(number, ["a"], place) for number in range(100)])
        both.subscribe([Subscription(number, ["a", "b"][: number % 3], place) for number in range(100, 200)])
        pairs = both.publish([*messages_at([(3, 3), (3, 4), Box(0, 0, 3, 3), (6, 6)]), Message(9, ["a", "b"], (3, 3))])
        assert sum(pair.message_id == 9 for pair in pairs) == 200

    @pytest.mark.parametrize("space", ["lonlat", "plane"])
    def test_a_range_message_over_many_regions_is_reported_once_each(self, space: str) -> None:
        both = self.compare(space)
        both.subscribe(
            [Subscription(30 * x + y, ["a"], Box(2 * x - 30, 2 * y - 30, 2 * x - 25, 2 * y - 25)) for x, y in grid(range(30))]
            + [Subscription(1000, ["a"], Box(-80, -80, 80, 80)), Subscription(1001, [], Box(-80, 0, 80, 0))]
        )
        pairs = both.publish(
            messages_at([Box(-90, -90, 90, 90), Box(-10, -10, 10, 10), Box(-60, 0, 60, 0), Box(7, -50, 7, 50)])
        )
        assert sum(pair.message_id == 0 for pair in pairs) == 902

    @pytest.mark.parametrize("space", ["lonlat", "plane"])
    def test_messages_outside_of_everything_the_index_was_built_for(self, space: str) -> None:
        both = self.compare(space)
        both.subscribe([Subscription(i, ["a"], Box(i % 10, i // 10, i % 10 + 1, i // 10 + 1)) for i in range(100)])
        assert both.publish(messages_at([(-50, -50), (50, 5), (5, 50), (-180, 90), Box(20, 20, 80, 80)])) == set()
        # Regions far outside what the structure covered when it was built.
        both.subscribe([Subscription(200, ["a"], Box(-60, -60, -50, -50)), Subscription(201, ["a"], Box(5, 5, 70, 70))])
        pairs = both.publish(messages_at([(-50, -50), (50, 50), (5, 5), Box(70, 70, 80, 80), Box(-55, -55, 100, 80)]))
        assert {pair for pair in pairs if pair.subscription_id == 200} == {Pair(200, 0), Pair(200, 4)}

    def test_circles_in_the_plane_include_their_border(self) -> None:
        both = self.compare("plane")
        both.subscribe(
            [
                Subscription(1, ["a"], Circle(0, 0, 5)),
                Subscription(2, ["a"], Circle(3, 4, 0)),
                Subscription(3, ["a"], Circle(10, 10, 0.5)),
            ]
        )
        pairs = both.publish(messages_at([(3, 4), (5, 0), (4, 4), (-3, -4), Box(3, 4, 9, 9), Box(4, 4, 9, 9)]))
        assert {pair.message_id for pair in pairs if pair.subscription_id == 1} == {0, 1, 3, 4}
        assert {pair.message_id for pair in pairs if pair.subscription_id == 2} == {0, 4}

    def test_the_corner_of_the_box_around_a_circle_is_not_in_the_circle(self) -> None:
        both = self.compare("lonlat")
        both.subscribe([Subscription(1, ["a"], Circle(10, 50, 100_000)), Subscription(2, ["a"], Circle(10, 50, 0))])
        pairs = both.publish(messages_at([(10, 50), (10, 50.89), (11.3, 50), (11.2, 50.8), Box(11.2, 50.8, 12, 52)]))
        assert {pair.message_id for pair in pairs if pair.subscription_id == 1} == {0, 1, 2}
        assert {pair.message_id for pair in pairs if pair.subscription_id == 2} == {0}

    def test_circles_at_the_antimeridian_reach_both_sides(self) -> None:
        both = self.compare("lonlat")
        both.subscribe([Subscription(1, ["a"], Circle(179.9, -17, 50_000)), Subscription(2, ["a"], Circle(-180, 10, 50_000))])
        locations = [(179.8, -17), (-179.9, -17), (-179.0, -17), (180, 10), (-180, 10), (179.7, 10), (-179.7, 10), (-179, 10)]
        pairs = both.publish(messages_at([*locations, Box(-180, -18, -179.95, -16), Box(-179, -18, -178, -16)]))
        assert {pair.message_id for pair in pairs if pair.subscription_id == 1} == {0, 1, 8}
        assert {pair.message_id for pair in pairs if pair.subscription_id == 2} == {3, 4, 5, 6}

    def test_circles_at_a_pole_reach_every_longitude(self) -> None:
        both = self.compare("lonlat")
        both.subscribe(
            [
                Subscription("pole", ["a"], Circle(0, 90, 200_000)),
                Subscription("near", ["a"], Circle(30, 89.5, 200_000)),
                Subscription("south", ["a"], Circle(0, -89, 150_000)),
                Subscription("world", ["a"], Circle(0, 0, 20_100_000)),
            ]
        )
        ring = [(float(x), y) for x in range(-180, 181, 45) for y in (88.0, 88.9, 90.0, -89.9, -90.0)]
        pairs = both.publish(messages_at([*ring, Box(-180, 88, 180, 90), Box(100, 85, 140, 88.5), Box(170, 89, 180, 90)]))
        assert {pair.message_id for pair in pairs if pair.subscription_id == "world"} == set(range(len(ring) + 3))

    def test_the_border_of_a_hole_belongs_to_the_polygon(self) -> None:
        both = self.compare("plane")
        both.subscribe([Subscription(1, ["a"], _FRAME)])
        locations = grid([x / 2 for x in range(-1, 14)])
        pairs = both.publish(messages_at(locations))
        expected = {i for i, (x, y) in enumerate(locations) if 0 <= x <= 6 and 0 <= y <= 6 and not (2 < x < 4 and 2 < y < 4)}
        assert {pair.message_id for pair in pairs} == expected

    def test_a_range_message_touches_a_polygon_or_fits_into_its_hole(self) -> None:
        both = self.compare("plane")
        both.subscribe(
            [Subscription("frame", ["a"], _FRAME), Subscription("triangle", ["a"], Polygon([[(10, 0), (14, 0), (10, 4)]]))]
        )
        boxes = [
            Box(2.5, 2.5, 3.5, 3.5),
            Box(2, 2, 4, 4),
            Box(3, 3, 5, 5),
            Box(6, 6, 7, 7),
            Box(-9, -9, 9, 9),
            Box(2.5, 3, 3.5, 3),
        ]
        near_triangle = [
            Box(13, 3, 14, 4),
            Box(12, 2, 14, 4),
            Box(12, 2, 12, 2),
            Box(14, 0, 15, 1),
            Box(11, 1, 11, 1),
            Box(12, 2.5, 13, 2.5),
        ]
        pairs = both.publish(messages_at([*boxes, *near_triangle]))
        assert {pair.message_id for pair in pairs if pair.subscription_id == "frame"} == {1, 2, 3, 4}
        assert {pair.message_id for pair in pairs if pair.subscription_id == "triangle"} == {7, 8, 9, 10}

    def test_a_multipolygon_is_one_region(self) -> None:
        both = self.compare("plane")
        parts = MultiPolygon(
            [[[(0, 0), (2, 0), (2, 2), (0, 2)]], [[(2, 2), (4, 2), (4, 4), (2, 4)]], [[(9, 9), (9.5, 9), (9, 9.5)]]]
        )
        both.subscribe([Subscription(1, ["a"], parts), Subscription(2, interest="a OR b", region=parts)])
        pairs = both.publish(
            [
                *messages_at([(1, 1), (2, 2), (3, 1), (9.25, 9.25), (9.3, 9.3), Box(0, 0, 10, 10), Box(3, 0, 4, 1)]),
                Message(7, ["a", "b"], (2, 2)),
            ]
        )
        assert {pair.message_id for pair in pairs if pair.subscription_id == 1} == {0, 1, 3, 5, 7}
        assert len(pairs) == 10

    def test_a_polygon_across_the_antimeridian(self) -> None:
        both = self.compare("lonlat")
        ring = [[170, -10], [-170, -10], [-170, 10], [170, 10], [170, -10]]
        both.subscribe([Subscription(1, ["a"], region({"type": "Polygon", "coordinates": [ring]}))])
        pairs = both.publish(messages_at([(175, 0), (-175, 0), (180, 0), (-180, 10), (0, 0), (169, 0), Box(-172, 9, -160, 20)]))
        assert {pair.message_id for pair in pairs} == {0, 1, 2, 3, 6}

    def test_many_polygons_circles_and_boxes_together(self) -> None:
        both = self.compare("plane")
        subscriptions = []
        for i in range(60):
            x, y = float(i % 8), float(i // 8)
            shapes = [
                Box(x, y, x + 2, y + 1),
                Circle(x, y, 1.5),
                Polygon([[(x, y), (x + 3, y), (x, y + 3)]]),
                Polygon([[(x, y), (x + 3, y), (x + 3, y + 3), (x, y + 3)], [(x + 1, y + 1), (x + 2, y + 1), (x + 1, y + 2)]]),
            ]
            subscriptions += [Subscription(4 * i + kind, ["a"], shape) for kind, shape in enumerate(shapes)]
        both.subscribe(subscriptions)
        both.publish(messages_at(grid([0.0, 0.5, 1.0, 2.0, 3.25, 5.0, 8.0, 9.5])))
        both.publish(messages_at([Box(x, y, x + 1, y + 0.5) for x, y in grid(range(-1, 10, 2))]))
