// The map itself: one MapLibre view that follows the state.
import { effect } from '@preact/signals';
import type { GeoJSONSource, Map as MapView } from 'maplibre-gl';
import * as maplibre from 'maplibre-gl';
import workerUrl from 'maplibre-gl/dist/maplibre-gl-worker.mjs?url';
import 'maplibre-gl/dist/maplibre-gl.css';
import { useEffect, useRef } from 'preact/hooks';
import { api } from '../api';
import { boundsOf, pointOf } from '../geometry';
import { start } from '../start';
import { attempt, clicked, draft, isIndexShown, messageById, messages, selected, subscriptions, theme, trails } from '../state';
import type { FeatureCollection } from 'geojson';
import { baseStyle, coarse, counties, COUNTIES_FROM, EMPTY, fine, FINE_FROM, PALETTES, states, STATES_BOUNDS, STATES_FROM } from './base';
import { showDeliveries } from './deliveries';
import { letDraw } from './drawing';
import { areasOf, borderOf, cellAreas, draftOf, fillOf, lines, messagePoints, overlays, placesOf, SOURCES, type SourceName } from './layers';
import { letDrag, letPick } from './picking';

maplibre.setWorkerUrl(workerUrl);

let view: MapView | null = null;
const shown: Partial<Record<SourceName, FeatureCollection>> = {};
const OUTLINES = ['countries', 'states', 'counties'] as const;
type Outline = (typeof OUTLINES)[number];
let outlines: Record<Outline, FeatureCollection> = { countries: EMPTY, states: EMPTY, counties: EMPTY };

/** Have the map show a place. */
export function flyTo(bounds: [number, number, number, number]): void {
  view?.fitBounds(bounds, { padding: 80, maxZoom: 13, duration: 600 });
}

// A crowd so far out is outlines only: each fill would be a hundredth of a colour over the others.
const FILLED_FROM = 6;

function show(name: SourceName, data: FeatureCollection): void {
  shown[name] = data;
  view?.getSource<GeoJSONSource>(name)?.setData(data);
}

function showOutlines(name: Outline, data: FeatureCollection): void {
  outlines = { ...outlines, [name]: data };
  view?.getSource<GeoJSONSource>(name)?.setData(data);
}

/** What lies over the base map; a new style has none of it. */
function drawOverlays(map: MapView): void {
  const palette = PALETTES[theme.value];
  // Thousands of areas are drawn with fewer corners where nobody sees them.
  for (const name of SOURCES) map.addSource(name, { type: 'geojson', data: shown[name] ?? EMPTY, tolerance: name === 'areas' ? 0.5 : 0.1 });
  for (const layer of overlays(palette)) map.addLayer(layer);
  for (const name of OUTLINES) map.getSource<GeoJSONSource>(name)?.setData(outlines[name]);
  showTiles(map);
  thinOut(map);
}

/** Another theme is another style: everything drawn is drawn again. */
function restyle(map: MapView): void {
  map.setStyle(baseStyle(PALETTES[theme.value]), { diff: false });
  map.once('styledata', () => drawOverlays(map));
}

/** Coarse outlines from afar, fine ones from near: each is fetched when it is first of use. */
async function showCountries(map: MapView): Promise<void> {
  const wanted = map.getZoom() < FINE_FROM ? 'coarse' : 'fine';
  if (countriesShown === wanted || countriesShown === 'fine') return;
  countriesShown = wanted;
  showOutlines('countries', await (wanted === 'fine' ? fine() : coarse()));
}
let countriesShown: 'none' | 'coarse' | 'fine' = 'none';

/** Tiles of the user's choice, over the land and under everything else. */
let tiles = '';
function showTiles(map: MapView): void {
  if (!tiles || map.getSource('tiles')) return;
  map.addSource('tiles', { type: 'raster', tiles: [tiles], tileSize: 256 });
  map.addLayer({ id: 'tiles', type: 'raster', source: 'tiles' }, map.getLayer('cells') ? 'cells' : undefined);
}

async function readSettings(map: MapView): Promise<void> {
  const answer = await fetch('./console.json');
  tiles = answer.ok ? ((await answer.json()) as { tiles: string }).tiles : '';
  if (map.isStyleLoaded()) showTiles(map);
  else map.once('idle', () => showTiles(map));
}

function thinOut(map: MapView): void {
  if (!map.getLayer('areas')) return;
  const crowd = Math.min(1, Math.log10(Math.max(10, subscriptions.value.size) / 10) / 2.3);
  map.setPaintProperty('areas', 'fill-opacity', fillOf(crowd));
  map.setLayerZoomRange('areas', crowd < 1 ? 0 : FILLED_FROM, 24);
  map.setPaintProperty('area-borders', 'line-opacity', borderOf(crowd));
}

/** Counties are large; they are fetched when they can be seen. */
async function showCounties(map: MapView): Promise<void> {
  if (map.getZoom() < COUNTIES_FROM || !isInStates(map) || outlines.counties !== EMPTY) return;
  showOutlines('counties', await counties());
}

async function showStates(map: MapView): Promise<void> {
  if (map.getZoom() < STATES_FROM || !isInStates(map) || outlines.states !== EMPTY) return;
  showOutlines('states', await states());
}

function isInStates(map: MapView): boolean {
  const seen = map.getBounds();
  const [west, south, east, north] = STATES_BOUNDS;
  return seen.getWest() < east && seen.getEast() > west && seen.getSouth() < north && seen.getNorth() > south;
}

async function showCells(map: MapView): Promise<void> {
  if (!isIndexShown.value) {
    show('cells', EMPTY);
    return;
  }
  const bounds = map.getBounds();
  const found = await attempt(() => api.cells([bounds.getWest(), bounds.getSouth(), bounds.getEast(), bounds.getNorth()]));
  if (found) show('cells', cellAreas(found.cells));
}

function selection(): FeatureCollection {
  const chosen = selected.value;
  if (chosen?.kind === 'message') {
    const message = messageById.value.get(chosen.id);
    return message ? draftOf(null, pointOf(message.location)) : EMPTY;
  }
  const one = chosen && subscriptions.value.get(chosen.id);
  return one ? draftOf(one.region ?? null, one.region ? null : (one.location?.coordinates ?? null)) : EMPTY;
}

export function MapPane() {
  const holder = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const map = new maplibre.Map({
      container: holder.current!,
      style: baseStyle(PALETTES[theme.value]),
      ...(start.view ?? { center: [-40, 35], zoom: 1.6 }),
      attributionControl: false,
      dragRotate: false,
      fadeDuration: 0,
      pixelRatio: Math.min(devicePixelRatio, 2),
    });
    view = map;
    map.addControl(new maplibre.NavigationControl({ showCompass: false }), 'top-right');
    map.addControl(new maplibre.ScaleControl({}), 'bottom-right');
    map.addControl(new maplibre.AttributionControl({ compact: true, customAttribution: 'Natural Earth · US Census' }), 'bottom-right');
    map.getCanvas().setAttribute('aria-label', 'Map of subscriptions and messages; arrow keys move it, plus and minus zoom');
    letDraw(map);
    letPick(map);
    letDrag(map);
    showDeliveries(map);
    map.on('moveend', () => void showCells(map));
    map.on('moveend', () => (void showStates(map), void showCounties(map)));
    void showStates(map);
    void showCounties(map);
    const stops = [
      theme.subscribe((() => {
        // Called at once with what there is, which the map was made with.
        let isFirst = true;
        return () => {
          if (!isFirst) restyle(map);
          isFirst = false;
        };
      })()),
      effect(() => (show('areas', areasOf(subscriptions.value.values())), thinOut(map))),
      effect(() => show('places', placesOf(subscriptions.value.values()))),
      effect(() => show('messages', messagePoints(messages.value))),
      effect(() => show('trails', lines([...trails.value.values()].map((path) => ({ path }))))),
      effect(() => show('draft', draftOf(draft.value, clicked.value))),
      effect(() => show('selection', selection())),
      effect(() => (isIndexShown.value, void showCells(map))),
    ];
    void readSettings(map);
    map.once('styledata', () => drawOverlays(map));
    map.on('moveend', () => void showCountries(map));
    void showCountries(map);
    // For scripts that look at the page: the view, and when it is idle.
    (window as unknown as { nearcastMap: MapView }).nearcastMap = map;
    return () => {
      for (const end of stops) end();
      map.remove();
      view = null;
    };
  }, []);
  return <div class="map" ref={holder} />;
}

/** All that is subscribed to, in one view. */
export function showAll(): void {
  const regions = [...subscriptions.value.values()].flatMap((one) => (one.region ? [boundsOf(one.region)] : []));
  if (!regions.length || start.view) return;
  const [west, south, east, north] = [0, 1, 2, 3].map((side) => regions.map((bounds) => bounds[side]!));
  flyTo([Math.min(...west!), Math.min(...south!), Math.max(...east!), Math.max(...north!)]);
}
