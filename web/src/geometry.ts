// Small geometry on the sphere, for drawing only: the server decides what matches.
import type { Place, Position, Region } from './wire';

const EARTH = 6_371_008.8;
const CORNERS_OF_A_CIRCLE = 64;
const radians = (degrees: number) => (degrees * Math.PI) / 180;
const degrees = (angle: number) => (angle * 180) / Math.PI;

/** Metres between two places. */
export function distance([lon0, lat0]: Position, [lon1, lat1]: Position): number {
  const sinLat = Math.sin(radians(lat1 - lat0) / 2);
  const sinLon = Math.sin(radians(lon1 - lon0) / 2);
  const h = sinLat * sinLat + Math.cos(radians(lat0)) * Math.cos(radians(lat1)) * sinLon * sinLon;
  return 2 * EARTH * Math.asin(Math.min(1, Math.sqrt(h)));
}

/** The border of a circle; longitudes go on past 180 rather than jump. */
export function circleRing([lon, lat]: Position, radius: number): Position[] {
  const angle = Math.min(radius / EARTH, Math.PI);
  const ring: Position[] = [];
  for (let corner = 0; corner <= CORNERS_OF_A_CIRCLE; corner += 1) {
    const bearing = (2 * Math.PI * corner) / CORNERS_OF_A_CIRCLE;
    const sin = Math.sin(radians(lat)) * Math.cos(angle) + Math.cos(radians(lat)) * Math.sin(angle) * Math.cos(bearing);
    const y = Math.asin(Math.max(-1, Math.min(1, sin)));
    const x = Math.atan2(
      Math.sin(bearing) * Math.sin(angle) * Math.cos(radians(lat)),
      Math.cos(angle) - Math.sin(radians(lat)) * sin,
    );
    ring.push([lon + degrees(x), degrees(y)]);
  }
  return ring;
}

export function boxRing([west, south, east, north]: [number, number, number, number]): Position[] {
  return [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ];
}

/** A region as polygons that a map can draw. */
export function polygonsOf(region: Region): Position[][][] {
  switch (region.type) {
    case 'Box':
      return [[boxRing(region.bbox)]];
    case 'Circle':
      return [[circleRing(region.coordinates, region.radius)]];
    case 'Polygon':
      return [region.coordinates];
    case 'MultiPolygon':
      return region.coordinates;
  }
}

export function boundsOf(region: Region): [number, number, number, number] {
  const corners = polygonsOf(region).flat(2);
  const lons = corners.map(([lon]) => lon);
  const lats = corners.map(([, lat]) => lat);
  return [Math.min(...lons), Math.min(...lats), Math.max(...lons), Math.max(...lats)];
}

export function middleOf(region: Region): Position {
  if (region.type === 'Circle') return region.coordinates;
  const [west, south, east, north] = boundsOf(region);
  return [(west + east) / 2, (south + north) / 2];
}

export function pointOf(place: Place): Position {
  return place.type === 'Point' ? place.coordinates : middleOf(place);
}

/** The same region elsewhere. */
export function movedTo(region: Region, [lon, lat]: Position): Region {
  const [fromLon, fromLat] = middleOf(region);
  const shift = ([x, y]: Position): Position => [x + lon - fromLon, y + lat - fromLat];
  switch (region.type) {
    case 'Circle':
      return { ...region, coordinates: [lon, lat] };
    case 'Box': {
      const [west, south] = shift([region.bbox[0], region.bbox[1]]);
      const [east, north] = shift([region.bbox[2], region.bbox[3]]);
      return { ...region, bbox: [west, south, east, north] };
    }
    case 'Polygon':
      return { ...region, coordinates: region.coordinates.map((ring) => ring.map(shift)) };
    case 'MultiPolygon':
      return { ...region, coordinates: region.coordinates.map((rings) => rings.map((ring) => ring.map(shift))) };
  }
}

/** A ring without jumps at the antimeridian: otherwise it is drawn as a band around the world. */
export function unwrapped(ring: Position[]): Position[] {
  let shift = 0;
  let before = ring[0]?.[0] ?? 0;
  return ring.map(([lon, lat]) => {
    if (lon - before > 180) shift -= 360;
    if (lon - before < -180) shift += 360;
    before = lon;
    return [lon + shift, lat];
  });
}

export function metres(value: number): string {
  return value < 1000 ? `${Math.round(value)} m` : `${(value / 1000).toFixed(value < 10_000 ? 1 : 0)} km`;
}
