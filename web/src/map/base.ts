// The base map: countries and states from the packages world-atlas and us-atlas, so that nothing is asked of other hosts.
import type { FeatureCollection, Geometry, MultiPolygon, Polygon } from 'geojson';
import type { StyleSpecification } from 'maplibre-gl';
import { feature } from 'topojson-client';
import type { Topology } from 'topojson-specification';
import { unwrapped } from '../geometry';
import type { Position } from '../wire';

export interface Palette {
  sea: string;
  land: string;
  border: string;
  text: string;
  halo: string;
  boolean: string;
  moving: string;
  ranked: string;
  paused: string;
  message: string;
  hit: string;
  draft: string;
}

export const PALETTES: Record<'light' | 'dark', Palette> = {
  light: {
    sea: '#dfe8ee',
    land: '#f7f5f0',
    border: '#b9bfc4',
    text: '#57606a',
    halo: '#ffffff',
    boolean: '#2563a8',
    moving: '#0f8a6d',
    ranked: '#8a4fbf',
    paused: '#8b949e',
    message: '#e4572e',
    hit: '#e4572e',
    draft: '#d6336c',
  },
  dark: {
    sea: '#10161d',
    land: '#1c242d',
    border: '#3a4652',
    text: '#9aa7b4',
    halo: '#10161d',
    boolean: '#6aa9ee',
    moving: '#3fcda6',
    ranked: '#c39af0',
    paused: '#6e7a86',
    message: '#ff8a5c',
    hit: '#ffb086',
    draft: '#ff6fa3',
  },
};

export const EMPTY: FeatureCollection = { type: 'FeatureCollection', features: [] };

/** Outlines of countries, coarse and fine, and of states and counties where they are known; and the zoom they are of use from. */
export const coarse = async () => outlines(await import('world-atlas/countries-110m.json'), 'countries');
export const fine = async () => outlines(await import('world-atlas/countries-50m.json'), 'countries');
export const counties = async () => outlines(await import('us-atlas/counties-10m.json'), 'counties');
export const FINE_FROM = 3.5;
export const STATES_FROM = 3;
export const COUNTIES_FROM = 6;
/** Where there are states and counties: west, south, east, north. */
export const STATES_BOUNDS = [-180, 17, -65, 72] as const;
export const states = async () => outlines(await import('us-atlas/states-10m.json'), 'states');

function outlines(read: unknown, name: string): FeatureCollection {
  const topology = ((read as { default?: unknown }).default ?? read) as Topology;
  const found = feature(topology, topology.objects[name]!) as unknown as FeatureCollection;
  return { ...found, features: found.features.map((one) => ({ ...one, geometry: withoutJumps(one.geometry) })) };
}

function withoutJumps(geometry: Geometry): Geometry {
  const rings = (given: Polygon['coordinates']) => given.map((ring) => unwrapped(ring as Position[]));
  if (geometry?.type === 'Polygon') return { ...geometry, coordinates: rings(geometry.coordinates) };
  if (geometry?.type === 'MultiPolygon') return { ...geometry, coordinates: (geometry as MultiPolygon).coordinates.map(rings) };
  return geometry;
}

export function baseStyle(palette: Palette): StyleSpecification {
  return {
    version: 8,
    sources: {
      // Outlines have no more detail than this: cutting them into finer tiles is work for nothing.
      countries: { type: 'geojson', data: EMPTY, maxzoom: 4 },
      states: { type: 'geojson', data: EMPTY, maxzoom: 5 },
      counties: { type: 'geojson', data: EMPTY, maxzoom: 6 },
    },
    layers: [
      { id: 'sea', type: 'background', paint: { 'background-color': palette.sea } },
      { id: 'land', type: 'fill', source: 'countries', paint: { 'fill-color': palette.land } },
      { id: 'county-land', type: 'fill', source: 'counties', minzoom: COUNTIES_FROM, paint: { 'fill-color': palette.land } },
      {
        id: 'counties',
        type: 'line',
        source: 'counties',
        minzoom: COUNTIES_FROM,
        paint: { 'line-color': palette.border, 'line-width': 0.6 },
      },
      { id: 'states', type: 'line', source: 'states', minzoom: STATES_FROM, paint: { 'line-color': palette.border, 'line-width': 0.5 } },
      { id: 'borders', type: 'line', source: 'countries', paint: { 'line-color': palette.border, 'line-width': 0.9 } },
    ],
  };
}
