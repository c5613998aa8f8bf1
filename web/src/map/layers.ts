// What is drawn over the base map: from the state to GeoJSON, and the layers that show it.
import type { Feature, FeatureCollection } from 'geojson';
import type { LayerSpecification } from 'maplibre-gl';
import { middleOf, pointOf, polygonsOf } from '../geometry';
import type { Cell, Message, Position, Region, Subscription } from '../wire';
import type { Palette } from './base';

const collection = (features: Feature[]): FeatureCollection => ({ type: 'FeatureCollection', features });

/** What colours it: its kind, unless it is paused. */
const lookOf = (one: Subscription) => (one.paused ? 'paused' : one.kind);

export function areasOf(all: Iterable<Subscription>): FeatureCollection {
  const features: Feature[] = [];
  for (const one of all) {
    if (!one.region) continue;
    const coordinates = polygonsOf(one.region);
    features.push({ type: 'Feature', properties: { id: one.id, kind: lookOf(one) }, geometry: { type: 'MultiPolygon', coordinates } });
  }
  return collection(features);
}

/** Subscribers that are a point: ranked ones, and the middle of moving ones, by which they are dragged. */
export function placesOf(all: Iterable<Subscription>): FeatureCollection {
  const features: Feature[] = [];
  for (const one of all) {
    const at = one.kind === 'ranked' ? one.location?.coordinates : one.kind === 'moving' && one.region ? middleOf(one.region) : null;
    if (at) features.push(point(at, { id: one.id, kind: lookOf(one) }));
  }
  return collection(features);
}

export function messagePoints(all: readonly Message[]): FeatureCollection {
  return collection(all.map((message) => point(pointOf(message.location), { id: message.id })));
}

export function lines(all: Iterable<{ path: Position[]; strength?: number; kind?: string }>): FeatureCollection {
  const features: Feature[] = [];
  for (const { path, strength = 1, kind = '' } of all) {
    if (path.length < 2) continue;
    features.push({ type: 'Feature', properties: { strength, kind }, geometry: { type: 'LineString', coordinates: path } });
  }
  return collection(features);
}

export function draftOf(region: Region | null, clicked: Position | null): FeatureCollection {
  const features: Feature[] = [];
  if (region) features.push({ type: 'Feature', properties: {}, geometry: { type: 'MultiPolygon', coordinates: polygonsOf(region) } });
  if (clicked) features.push(point(clicked, {}));
  return collection(features);
}

/** Cells of the index, the fullest in the strongest colour. */
export function cellAreas(cells: readonly Cell[]): FeatureCollection {
  const most = Math.max(1, ...cells.map((cell) => cell.load));
  return collection(
    cells.map(({ bbox, load }) => ({
      type: 'Feature',
      properties: { load, share: Math.log1p(load) / Math.log1p(most) },
      geometry: { type: 'MultiPolygon', coordinates: polygonsOf({ type: 'Box', bbox }) },
    })),
  );
}

function point(coordinates: Position, properties: Record<string, unknown>): Feature {
  return { type: 'Feature', properties, geometry: { type: 'Point', coordinates } };
}

export const SOURCES = ['cells', 'areas', 'trails', 'messages', 'deliveries', 'places', 'draft', 'selection'] as const;
export type SourceName = (typeof SOURCES)[number];

/** Many outlines over each other are drawn fainter: `crowd` is 0 for a few, 1 for thousands. */
export const fillOf = (crowd: number) => 0.09 - 0.08 * crowd;
export const borderOf = (crowd: number) => 0.8 - 0.55 * crowd;

export function overlays(palette: Palette): LayerSpecification[] {
  const { moving, ranked, paused } = palette;
  const byKind = ['match', ['get', 'kind'], 'moving', moving, 'ranked', ranked, 'paused', paused, palette.boolean] as never;
  return [
    {
      id: 'cells',
      type: 'fill',
      source: 'cells',
      paint: { 'fill-color': palette.draft, 'fill-opacity': ['*', 0.3, ['get', 'share']] as never, 'fill-outline-color': palette.border },
    },
    { id: 'areas', type: 'fill', source: 'areas', paint: { 'fill-color': byKind, 'fill-opacity': 0.07 } },
    { id: 'area-borders', type: 'line', source: 'areas', paint: { 'line-color': byKind, 'line-width': 1.1, 'line-opacity': 0.75 } },
    {
      id: 'trails',
      type: 'line',
      source: 'trails',
      paint: { 'line-color': palette.moving, 'line-width': 2, 'line-dasharray': [2, 1.5], 'line-opacity': 0.8 },
    },
    {
      // Many messages far out are a heat, close up they are points.
      id: 'message-heat',
      type: 'heatmap',
      source: 'messages',
      maxzoom: 7,
      paint: {
        'heatmap-radius': ['interpolate', ['linear'], ['zoom'], 0, 6, 7, 18] as never,
        'heatmap-weight': 0.35,
        'heatmap-opacity': ['interpolate', ['linear'], ['zoom'], 5, 0.75, 7, 0] as never,
        'heatmap-color': [
          'interpolate',
          ['linear'],
          ['heatmap-density'],
          0,
          'rgba(0,0,0,0)',
          0.25,
          'rgba(250,176,120,0.55)',
          0.7,
          palette.message,
          1,
          '#c92a2a',
        ] as never,
      },
    },
    {
      id: 'messages',
      type: 'circle',
      source: 'messages',
      minzoom: 5,
      paint: {
        'circle-radius': ['interpolate', ['linear'], ['zoom'], 5, 1.6, 12, 5] as never,
        'circle-color': palette.message,
        'circle-opacity': 0.75,
        'circle-stroke-color': palette.halo,
        'circle-stroke-width': 0.6,
      },
    },
    {
      id: 'deliveries',
      type: 'line',
      source: 'deliveries',
      paint: { 'line-color': palette.hit, 'line-width': 2, 'line-opacity': ['get', 'strength'] as never },
    },
    {
      id: 'places',
      type: 'circle',
      source: 'places',
      paint: { 'circle-radius': 6, 'circle-color': byKind, 'circle-stroke-color': palette.halo, 'circle-stroke-width': 2 },
    },
    { id: 'selection', type: 'line', source: 'selection', paint: { 'line-color': palette.draft, 'line-width': 3 } },
    {
      id: 'selection-point',
      type: 'circle',
      source: 'selection',
      filter: ['==', ['geometry-type'], 'Point'] as never,
      paint: { 'circle-radius': 11, 'circle-color': 'rgba(0,0,0,0)', 'circle-stroke-color': palette.draft, 'circle-stroke-width': 3 },
    },
    { id: 'draft', type: 'fill', source: 'draft', paint: { 'fill-color': palette.draft, 'fill-opacity': 0.15 } },
    { id: 'draft-border', type: 'line', source: 'draft', paint: { 'line-color': palette.draft, 'line-width': 2, 'line-dasharray': [3, 2] } },
    {
      id: 'draft-point',
      type: 'circle',
      source: 'draft',
      filter: ['==', ['geometry-type'], 'Point'] as never,
      paint: { 'circle-radius': 7, 'circle-color': palette.draft, 'circle-stroke-color': palette.halo, 'circle-stroke-width': 2 },
    },
  ];
}
